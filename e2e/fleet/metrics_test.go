package fleet

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// scrape reads metrics as Prometheus does.
func scrape(t testing.TB, url, token string) map[string]*dto.MetricFamily {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 || expfmt.ResponseFormat(answer.Header).FormatType() != expfmt.TypeTextPlain {
		t.Fatalf("status %s, type %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// A node shows its numbers in a form that Prometheus' own library reads, says whether it is healthy, and writes a log of what it does.
func TestMetricsOfANode(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	node, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	const token = "correct-horse-battery"
	file, log := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "node.log")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, said := node.serve("m", "--metrics", "127.0.0.1:0", "--metrics-token-file", file, "--log", log)
	at := regexp.MustCompile(`http://[0-9.:]+/metrics`)
	eventually(t, "it says where", func() bool { return at.MatchString(said.String()) })
	url := at.FindString(said.String())

	client.must("exec", "--demo", "--fleet", "--node-dir", node.dir, "run: pwd")
	eventually(t, "the end is counted", func() bool { return scrape(t, url, token)["fermata_turns_total"].GetMetric() != nil })
	families := scrape(t, url, token)
	if n := families["fermata_turns_total"].GetMetric()[0]; n.GetCounter().GetValue() != 1 || n.GetLabel()[0].GetValue() != "completed" {
		t.Errorf("turns: %v", n)
	}
	if h := families["fermata_turn_seconds"].GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || len(h.GetBucket()) < 5 {
		t.Errorf("seconds: %v", h)
	}
	for name, want := range map[string]float64{"fermata_node_turns_limit": 4, "fermata_node_draining": 0, "fermata_healthy": 1} {
		if got := families[name].GetMetric()[0].GetGauge().GetValue(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if answer, err := http.Get(url); err != nil || answer.StatusCode != 401 {
		t.Errorf("without a token: %v, %v", answer.Status, err)
	}
	health := strings.TrimSuffix(url, "metrics") + "healthz"
	healthy := func() (int, string) {
		answer, err := http.Get(health)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	if code, text := healthy(); code != 200 {
		t.Errorf("healthz: %d %s", code, text)
	}
	eventually(t, "the log has the end", func() bool { return logged(t, log, "work", "ended") })
	if !logged(t, log, "work", "begun") {
		t.Error("the log has no beginning")
	}
	s.Shutdown()
	s.WaitForShutdown()
	eventually(t, "it is not healthy without its servers", func() bool { code, _ := healthy(); return code == 503 })
}

// logged reports whether a log, which is lines of JSON, has an entry of a kind, with what belongs to it.
func logged(t testing.TB, file, message, kind string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var entry struct {
			Time, Level, Msg, Kind, Conversation, User, Reason string
			Seconds                                            float64
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if entry.Msg == message && entry.Kind == kind {
			ended := kind != "ended" || entry.Reason == "completed" && entry.Seconds > 0
			return entry.Time != "" && entry.Level == "INFO" && entry.Conversation != "" && strings.HasPrefix(entry.User, "exec ") && ended
		}
	}
	return false
}
