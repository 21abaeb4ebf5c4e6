package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// served starts the demo model and returns its address.
func served(t *testing.T) (*process, string) {
	t.Helper()
	pl := newPlace(t)
	pr := pl.start("demo-model", "--listen", "127.0.0.1:0")
	eventually(t, "the address is printed", func() bool { return strings.HasSuffix(pr.out.String(), "\n") })
	url := strings.TrimSpace(pr.out.String())
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/v1") {
		t.Fatalf("address %q", url)
	}
	return pr, url
}

func ask(t *testing.T, method, url, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestDemoModelOverHTTP(t *testing.T) {
	t.Parallel()
	pr, url := served(t)
	const shell = `"tools":[{"type":"function","name":"shell","parameters":{}}]`
	const hello = `{"type":"message","role":"user","content":[{"type":"input_text","text":"run: echo hi"}]}`
	tests := []struct {
		name, method, path, body string
		status                   int
		want                     []string
	}{
		{"models", "GET", "/models", "", 200, []string{`"id":"demo"`}},
		{
			"stream", "POST", "/responses", `{"model":"demo","stream":true,` + shell + `,"input":[` + hello + `]}`, 200,
			[]string{"event: response.created\n", "event: response.output_text.delta\n", `"function_call"`, "echo hi", "event: response.completed\n"},
		},
		{
			"whole", "POST", "/responses", `{"model":"demo",` + shell + `,"input":[` + hello + `]}`, 200,
			[]string{`"status":"completed"`, `"function_call"`, "[demo] "},
		},
		{
			"a call without output", "POST", "/responses",
			`{"model":"demo","stream":true,"input":[` + hello + `,{"type":"function_call","call_id":"call_X","name":"shell","arguments":"{}"}]}`, 400,
			[]string{"No tool output found for function call call_X"},
		},
		{"no request", "POST", "/responses", `{`, 400, []string{`"error"`}},
		{"nothing of ours", "GET", "/nothing", "", 404, []string{`"error"`}},
	}
	for _, test := range tests {
		status, text := ask(t, test.method, url+test.path, test.body)
		if status != test.status {
			t.Errorf("%s: status %d, want %d: %s", test.name, status, test.status, text)
		}
		contains(t, test.name, text, test.want...)
	}
	pr.signal(syscall.SIGTERM)
	if code := pr.code(); code != exitOK {
		t.Errorf("exit code %d after it was asked to stop\n%s", code, pr.err.String())
	}
}

// A response that runs does not keep the server from stopping.
func TestDemoModelStopsInMidResponse(t *testing.T) {
	t.Parallel()
	pr, url := served(t)
	body := `{"model":"demo","stream":true,"input":[{"role":"user","content":"talk 1000"}]}`
	res, err := http.Post(url+"/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 500)); err != nil {
		t.Fatal(err)
	}
	pr.signal(syscall.SIGINT)
	if code := pr.code(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, pr.err.String())
	}
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("the response ended as if it were whole")
	}
}

func TestDemoModelSaysThatTheAddressIsTaken(t *testing.T) {
	t.Parallel()
	_, url := served(t)
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/v1")
	_, errs, code := newPlace(t).run("demo-model", "--listen", host)
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	contains(t, "stderr", errs, "fermata: listen on "+host, "address already in use")
}
