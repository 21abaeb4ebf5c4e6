package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/longtest"
)

// To start the program costs more than most lines of a script do. So there is call beside exits: in a plain run, all
// such lines of a script are carried out by one process, one after the other; where long tests run, each by a process
// of its own. They have no input, and are not about the process: signals, closed streams and limits need exits or exec.

// callServer is the argument that makes the program of the tests the process that carries out lines.
const callServer = "carry-out-calls"

// A callRequest is one line of a script, and where it is to be carried out.
type callRequest struct {
	Dir  string
	Env  []string
	Args []string
}

// A callResult is what the program would have printed, and its exit code.
type callResult struct {
	Out, Err []byte
	Code     int
}

// serveCalls carries out requests from stdin until there are no more.
func serveCalls() {
	requests, results := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r callRequest
		if err := requests.Decode(&r); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
		if err := results.Encode(r.do()); err != nil {
			panic(err)
		}
	}
}

func (r callRequest) do() callResult {
	os.Clearenv()
	for _, v := range r.Env {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if err := os.Chdir(r.Dir); err != nil {
		panic(err)
	}
	var out, errs lockedBuffer
	code := run(context.Background(), r.Args, cli.NewStreams(strings.NewReader(""), &out, &errs))
	return callResult{Out: out.Bytes(), Err: errs.Bytes(), Code: code}
}

// A lockedBuffer can be written to by several goroutines, as a file can.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Bytes()
}

// A callProcess is the process that carries out the lines of one script.
type callProcess struct {
	names    []string // of the environment variables of the script
	requests *json.Encoder
	results  *json.Decoder
	stderr   lockedBuffer
}

type callKey struct{}

// cmdCall is "call CODE fermata ARGS...": exits without a process of its own.
func cmdCall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "fermata" {
		ts.Fatalf("usage: call CODE fermata [ARGS...]")
	}
	if longtest.On() {
		cmdExits(ts, false, args)
		return
	}
	c := ts.Value(callKey{}).(*callProcess)
	if c.requests == nil {
		c.start(ts)
	}
	r := callRequest{Dir: ts.MkAbs("."), Env: []string{"PWD=" + ts.MkAbs(".")}, Args: args[2:]}
	for _, name := range c.names {
		r.Env = append(r.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(c.requests.Encode(r))
	var result callResult
	if err := c.results.Decode(&result); err != nil {
		ts.Fatalf("%v\n%s", err, c.stderr.Bytes())
	}
	_, _ = ts.Stdout().Write(result.Out)
	_, _ = ts.Stderr().Write(result.Err)
	checkCode(ts, result.Code, args[0])
}

func (c *callProcess) start(ts *testscript.TestScript) {
	cmd := exec.Command("fermata", callServer)
	cmd.Dir, cmd.Stderr = ts.Getenv("WORK"), &c.stderr
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	c.requests, c.results = json.NewEncoder(in), json.NewDecoder(out)
	ts.Defer(func() {
		in.Close()
		_ = cmd.Wait()
	})
}

var (
	inputForCall = regexp.MustCompile(`(?m)^(?:\[.*\] *)?(?:stdin|ttyin) .*\n(?:\[.*\] *)?call `)

	envLine = regexp.MustCompile(`(?m)^(?:\[.*\] *)?env .*$`)
	envName = regexp.MustCompile(`[ '](\w+)=`)
)

// newCallProcess is that of a script, not started. A script knows its variables but by their names: these are
// those that it has at first, and those that it sets.
func newCallProcess(env *testscript.Env) (*callProcess, error) {
	c := &callProcess{}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		c.names = append(c.names, name)
	}
	script := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	text, err := os.ReadFile(filepath.Join("testdata", "script", script+".txtar"))
	if err != nil {
		return nil, err
	}
	if line := inputForCall.Find(text); line != nil {
		return nil, fmt.Errorf("call reads no input, use exec or exits: %q", line)
	}
	for _, line := range envLine.FindAllString(string(text), -1) {
		for _, m := range envName.FindAllStringSubmatch(line, -1) {
			c.names = append(c.names, m[1])
		}
	}
	return c, nil
}
