// The client that the conformance tests for logins start with the address of their server: fermata mcp login,
// with a browser that agrees to everything, and then a call of the tool. Where fermata wants another login
// for it, there is one.
import { spawn } from 'node:child_process';

const fermata = (args, onText = () => {}) => new Promise((resolve) => {
  const child = spawn(process.env.FERMATA_BIN, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, BROWSER: 'true' } });
  let text = '';
  const take = (b) => { text += b; onText(text); };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  child.on('close', (code) => { console.error(text); resolve({ code, text }); });
});

const known = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const flags = [];
if (known.client_id) {
  flags.push('--client-id', known.client_id);
}
if (known.client_secret) {
  process.env.CLIENT_SECRET = known.client_secret;
  flags.push('--client-secret-env-var', 'CLIENT_SECRET');
}
const login = () => {
  let seen = false;
  return fermata(['mcp', 'login', 'x', '--no-browser', ...flags], (text) => {
    const address = text.match(/^(http\S+)\n/m);
    if (address && !seen) {
      seen = true;
      fetch(address[1]).catch((e) => console.error(e));
    }
  });
};
await fermata(['mcp', 'add', 'x', '--approval', 'allow', '--url', process.argv[2]]);
for (let i = 0; i < 3; i++) {
  const { code } = await login();
  if (code !== 0) {
    process.exit(1);
  }
  const { text } = await fermata(['exec', '--demo', '-c', 'mcp_servers.x.startup_timeout_sec=600', 'call: x__test-tool {}']);
  if (!text.includes('run fermata mcp login')) {
    break;
  }
}
