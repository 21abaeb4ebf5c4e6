package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// lastWord ends a reply of so many kilobytes. Its letters are nowhere else: programs draw only the cells that have
// changed, so that a word whose letter is on the screen already at that place would come in pieces.
func lastWord(kb int) string {
	if kb < 100 {
		return "ΞΨΩΦ"
	}
	return "ЖЮЯЩ"
}

// startModel starts a model that answers "KB n" with as many kilobytes of Markdown, in
// pieces, as fast as they are taken. It speaks the Responses API.
func startModel() (*httptest.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a request that cannot be read asks for nothing
		size := 1
		if i := strings.LastIndex(string(body), "KB "); i >= 0 {
			digits := string(body)[i+3:]
			digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
			if n, err := strconv.Atoi(digits); err == nil {
				size = n
			}
		}
		answer(w, text(size))
	})
	return httptest.NewServer(mux), nil
}

func text(kb int) string {
	var b strings.Builder
	for i := 1; b.Len() < kb<<10; i++ {
		fmt.Fprintf(&b, "## Part %d\n\nSome **bold** words, `code`, and a [link](https://example.com/%d) in a paragraph that is long enough to be wrapped on a screen of eighty columns.\n\n- one\n- two\n\n```go\nfunc f%d() int { return %d }\n```\n\n", i, i, i, i)
	}
	return b.String() + lastWord(kb)
}

// answer streams a message.
func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		data, _ := json.Marshal(fields) // of strings and numbers
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	item := func(text, status string) map[string]any {
		content := []any{}
		if text != "" {
			content = append(content, map[string]any{"type": "output_text", "text": text, "annotations": []any{}})
		}
		return map[string]any{"type": "message", "id": "m", "role": "assistant", "status": status, "content": content}
	}
	send("response.created", map[string]any{"response": map[string]any{"id": "r", "status": "in_progress"}})
	send("response.output_item.added", map[string]any{"output_index": 0, "item": item("", "in_progress")})
	for rest := text; rest != ""; {
		n := min(len(rest), 40)
		send("response.output_text.delta", map[string]any{"item_id": "m", "output_index": 0, "content_index": 0, "delta": rest[:n]})
		rest = rest[n:]
	}
	send("response.output_item.done", map[string]any{"output_index": 0, "item": item(text, "completed")})
	send("response.completed", map[string]any{"response": map[string]any{
		"id": "r", "status": "completed", "output": []any{item(text, "completed")},
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 10, "total_tokens": 20},
	}})
}
