package inproc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(t *testing.T, ctx context.Context, h http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model.test/v1/x?q=1", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	return (&http.Client{Transport: Transport(h)}).Do(req)
}

func TestRequestAndAnswer(t *testing.T) {
	resp, err := get(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Was", r.Method+" "+r.RequestURI+" "+string(body))
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "answer")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "answer" {
		t.Errorf("body %q, %v", body, err)
	}
	if resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Was") != "POST /v1/x?q=1 question" {
		t.Errorf("status %d, header %q", resp.StatusCode, resp.Header.Get("X-Was"))
	}
}

func TestAnEmptyAnswer(t *testing.T) {
	resp, err := get(t, t.Context(), func(http.ResponseWriter, *http.Request) {})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) > 0 || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, body %q, %v", resp.StatusCode, body, err)
	}
}

func TestAPanicCutsTheBody(t *testing.T) {
	resp, err := get(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("body %q, %v", body, err)
	}
}

func TestClosingTheBodyEndsTheHandler(t *testing.T) {
	ended := false
	resp, err := get(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		ended = true
	})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !ended {
		t.Error("the handler still runs after Close")
	}
}

func TestCancelBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := false
		_, err := get(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended = true
		})
		if !errors.Is(err, context.DeadlineExceeded) || !ended {
			t.Errorf("error %v, handler ended %v", err, ended)
		}
	})
}

func TestCancelWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		busy := make(chan struct{}) // the handler does not notice the cancel at once
		resp, err := get(t, ctx, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half")
			<-busy
		})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		close(busy)
		if string(body) != "half" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("body %q, %v", body, err)
		}
	})
}
