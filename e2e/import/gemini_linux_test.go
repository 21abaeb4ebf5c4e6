package imports

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func prepareGemini(t *testing.T, home, _ string) {
	put(t, filepath.Join(home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"disableAutoUpdate":true,"disableUpdateNag":true},"privacy":{"usageStatisticsEnabled":false}}`)
}

// geminiService speaks as much of Gemini's wire as its own client needs, and answers as play does.
type geminiService struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
}

func serveGemini(t *testing.T) model {
	s := &geminiService{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *geminiService) URL() string { return s.Server.URL }

func (s *geminiService) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

type geminiPart struct {
	Text     string         `json:"text,omitempty"`
	Call     *geminiCall    `json:"functionCall,omitempty"`
	Response map[string]any `json:"functionResponse,omitempty"`
}

type geminiCall struct {
	Name string            `json:"name"`
	Args map[string]string `json:"args"`
}

type geminiRequest struct {
	Contents []struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	} `json:"contents"`
	Tools []any `json:"tools"`
}

func (s *geminiService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	var req geminiRequest
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !strings.Contains(r.URL.Path, ":streamGenerateContent") {
		io.WriteString(w, geminiChunk(geminiPart{Text: "a title"}))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	beat := time.NewTicker(20 * time.Millisecond)
	defer beat.Stop()
	for _, part := range req.answer() {
		<-beat.C
		fmt.Fprintf(w, "data: %s\r\n\r\n", geminiChunk(part))
		w.(http.Flusher).Flush()
	}
}

// answer is that of play: two commands, then a text that takes a while.
func (r geminiRequest) answer() (parts []geminiPart) {
	outputs := 0
	for _, c := range slices.Backward(r.Contents) {
		answers := slices.ContainsFunc(c.Parts, func(p geminiPart) bool { return p.Response != nil })
		if c.Role == "user" && !answers {
			break
		}
		if answers {
			outputs++
		}
	}
	if outputs < 2 && len(r.Tools) > 0 {
		command := fmt.Sprintf("echo output-%d-$RANDOM; sleep 0.2", outputs)
		return []geminiPart{{Text: "Looking. "}, {Call: &geminiCall{Name: "run_shell_command", Args: map[string]string{"command": command}}}}
	}
	for i := range 20 {
		parts = append(parts, geminiPart{Text: fmt.Sprintf("word%d ", i)})
	}
	return parts
}

func geminiChunk(part geminiPart) string {
	text, _ := json.Marshal(part) // plain strings
	return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"totalTokenCount":13},"modelVersion":"m"}`, text)
}
