package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	p "github.com/fermata-agent/fermata/protocol"
)

// The page is one document: its style and its script are in it, so that it is there after one round trip.
var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/js
	scripts embed.FS
	//go:embed page/sw.js
	workerJS string
	//go:embed page/icon.svg
	iconSVG string
	//go:embed page/manifest.json
	manifestJSON string
	//go:embed page/openapi.json
	openAPIJSON string
)

// scriptParts are the files below page/js in the order in which the page has them. They share one scope.
var scriptParts = []string{"base", "proof", "requests", "stream", "items", "list", "route", "composer", "drafts", "dialogs", "approvals", "keys", "push", "session"}

// script is that of the page.
func script() string {
	var b strings.Builder
	b.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scriptParts {
		text, err := scripts.ReadFile("page/js/" + name + ".js")
		if err != nil {
			panic(err) // it is embedded
		}
		b.Write(text)
	}
	b.WriteString("})();\n")
	return b.String()
}

// document is the page with its policy, made when it is first needed.
var document = sync.OnceValue(func() (d struct{ html, policy string }) {
	pageJS := script()
	d.html = strings.NewReplacer("/*STYLE*/", pageCSS, "/*SCRIPT*/", pageJS).Replace(pageHTML)
	d.policy = "default-src 'none'; script-src " + sum(pageJS) + "; style-src " + sum(pageCSS) +
		"; img-src 'self' data:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'" +
		"; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types fermata"
	return d
})

// sum names an inline style or script in a policy.
func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
}

// page serves the page. It holds nothing that is secret, and can do nothing without a link or a session. Where a browser gives
// no page a key of its own, over plain HTTP beyond this machine, it is refused.
func (s *Server) page(w http.ResponseWriter, r *request) {
	if insecure(s.origins[r.Host]) {
		s.plain(w, http.StatusForbidden, "This page needs HTTPS", "Others on the way could do what you can do. Serve it with TLS: leave out --insecure-http. Or use 127.0.0.1 in place of a name, on the machine itself or through an SSH tunnel.", "")
		return
	}
	w.Header().Set("Content-Security-Policy", document().policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(document().html))
}

// insecure reports whether others could listen to what goes to an origin. localhost is one: it has two addresses, and another
// program may have the other one.
func insecure(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "https" {
		return err != nil
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

func (s *Server) asset(w http.ResponseWriter, kind, text string) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(text))
}

func (s *Server) worker(w http.ResponseWriter, _ *request) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'")
	s.asset(w, "text/javascript; charset=utf-8", workerJS)
}
func (s *Server) icon(w http.ResponseWriter, _ *request) { s.asset(w, "image/svg+xml", iconSVG) }
func (s *Server) manifest(w http.ResponseWriter, _ *request) {
	s.asset(w, "application/manifest+json", manifestJSON)
}

func (s *Server) openAPI(w http.ResponseWriter, _ *request) {
	s.asset(w, "application/json", openAPIJSON)
}

// plain serves a page without a script. inner is HTML made by package render, or by answerPage.
func (s *Server) plain(w http.ResponseWriter, status int, title, text, inner string) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src "+sum(pageCSS)+"; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Referrer-Policy", "same-origin") // else a browser hides from which page the form was sent
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>fermata</title><style>` +
		pageCSS + `</style><body class="plain"><main><h1>` + html.EscapeString(title) + `</h1><p>` + html.EscapeString(text) + `</p>` + inner + `</main></body></html>`))
}

// answerPage shows what one approval is about, to who has a link for it. Nothing is answered by
// looking: programs that show previews of links do.
func (s *Server) answerPage(w http.ResponseWriter, r *request) {
	a, err := s.o.Access.AnswerOf(r.PathValue("code"))
	if err != nil {
		s.strangerToAnswer(w, r)
		return
	}
	question, err := s.hub.Approval(r.Context(), a.Conversation, a.Call)
	if err != nil || question.HTML == "" {
		s.plain(w, http.StatusOK, "No approval is pending", "The approval was answered, or the turn has ended.", "")
		return
	}
	s.plain(w, http.StatusOK, "Allow this?", "", question.HTML+
		`<form method="post" class="answers"><input type="hidden" name="shown" value="`+question.Shown+`"><button name="decision" value="approved" class="yes">Yes</button> `+
		`<button name="decision" value="denied">No</button> <button name="decision" value="abort" class="danger">Stop the turn</button></form>`)
}

func (s *Server) strangerToAnswer(w http.ResponseWriter, r *request) {
	if !s.mayTry(r.Request) {
		refuse(w, http.StatusTooManyRequests, "rate", "too many wrong links: wait a minute")
		return
	}
	s.plain(w, http.StatusForbidden, "This link is not valid", "It has expired or was revoked.", "")
}

// answer answers one approval.
func (s *Server) answer(w http.ResponseWriter, r *request) {
	a, err := s.o.Access.AnswerOf(r.PathValue("code"))
	if err != nil {
		s.strangerToAnswer(w, r)
		return
	}
	decision := p.Decision(r.PostFormValue("decision"))
	if decision != p.Approved && decision != p.Denied && decision != p.Abort {
		refuse(w, http.StatusBadRequest, "decision", "decision must be approved, denied or abort")
		return
	}
	question, err := s.hub.Approval(r.Context(), a.Conversation, a.Call)
	if err == nil && question.HTML != "" && r.PostFormValue("shown") != question.Shown {
		s.plain(w, http.StatusConflict, "Not answered", "This is not what the page showed. Open the link again.", "")
		return
	}
	if _, err := s.o.Engine.Submit(r.Context(), a.Conversation, p.Approve{Call: a.Call, Decision: decision}); err != nil {
		s.plain(w, http.StatusConflict, "Not answered", err.Error(), "")
		return
	}
	s.plain(w, http.StatusOK, "Answered", "The answer was: "+string(decision)+".", "")
}
