// The conformance tests import fs.globSync, which Node has since version 22 and which the
// scenarios for clients do not call.
import fs from 'node:fs';
import { register } from 'node:module';

if (!fs.globSync) {
  const shim = 'data:text/javascript,' + encodeURIComponent(
    "export * from 'node:fs'; export { default } from 'node:fs'; export function globSync() { throw new Error('no globSync'); }");
  const hooks = `export async function resolve(name, context, next) {
    const from = context.parentURL ?? '';
    return name === 'fs' && from.includes('/conformance/dist/') ? { url: ${JSON.stringify(shim)}, shortCircuit: true } : next(name, context);
  }`;
  register('data:text/javascript,' + encodeURIComponent(hooks));
}
