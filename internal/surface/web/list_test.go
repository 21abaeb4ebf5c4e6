package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// The whole list can be had page by page, and looked through by text, state, directory and archive.
func TestListIsPagedAndFiltered(t *testing.T) {
	r := newRig(t)
	const many = 70
	var ids []p.ConversationID
	for i := range many {
		var c createAnswer
		r.must("POST", "/api/v1/conversations", fmt.Sprintf(`{"cwd":"/w%d"}`, i%2), &c)
		ids = append(ids, c.ID)
	}
	r.op(ids[0], p.Rename{Title: "Mend the PARSER"})
	r.must("POST", "/api/v1/conversations/"+string(ids[1])+"/archive", "{}", nil)
	waiting, _, _, _ := r.asked("work")
	list := func(query string) (found []p.ConversationID, pages int) {
		t.Helper()
		for cursor := ""; ; {
			var page listAnswer
			r.must("GET", "/api/v1/conversations?"+query+"&cursor="+url.QueryEscape(cursor), "", &page)
			for _, c := range page.Conversations {
				found = append(found, c.ID)
			}
			pages++
			if cursor = page.Next; cursor == "" {
				return found, pages
			}
		}
	}
	if found, pages := list("limit=25"); len(found) != many || pages != 3 {
		t.Errorf("%d conversations on %d pages", len(found), pages)
	}
	for query, want := range map[string][]p.ConversationID{
		"q=parser": {ids[0]}, "q=nowhere": nil, "archived=true": {ids[1]}, "state=waiting": {waiting}, "state=running": nil, "state=failed": nil, "q=parser&state=waiting": nil,
	} {
		if found, _ := list(query); fmt.Sprint(found) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", query, found, want)
		}
	}
	if found, _ := list("cwd=/w1"); len(found) != many/2-1 {
		t.Errorf("in one directory: %d", len(found))
	}
	var page listAnswer
	r.must("GET", "/api/v1/conversations?q=parser&html=true", "", &page)
	if !strings.Contains(page.HTML, `data-conversation="`+string(ids[0])+`"`) {
		t.Errorf("html %s", page.HTML)
	}
	if status, text, _ := r.do("GET", "/api/v1/conversations?state=x", "", nil); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, text)
	}
}

// A conversation that waits for an answer is on top of the list, however many others were changed since.
func TestWhoWaitsIsNeverBeyondTheList(t *testing.T) {
	r := newRig(t)
	waiting, _, _, _ := r.asked("work")
	for range 70 {
		r.must("POST", "/api/v1/conversations", `{"cwd":"/w"}`, nil)
	}
	m, ok := r.stream("POST", "/api/v1/view", `{"list":true,"have":{"cursor":0}}`).next()
	if !ok {
		t.Fatal("the stream ended")
	}
	var v listView
	if err := json.Unmarshal(m.data, &v); err != nil {
		t.Fatal(err)
	}
	if v.Waiting != 1 || !strings.Contains(v.HTML[:300], string(waiting)) {
		t.Errorf("%d wait; the list begins with %.300s", v.Waiting, v.HTML)
	}
}
