package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// overflowCodes are the codes and types that mean that a request is too long.
var overflowCodes = []string{
	"context_length_exceeded", "model_max_prompt_tokens_exceeded", "model_context_window_exceeded", "exceed_context_size_error",
	"request_too_large", "string_above_max_length", "context_window_exceeded", "ContextWindowExceededError", "1261",
}

// num is a number of tokens in a message.
const num = `(\d[\d,_]*)`

// overflowForms are the ways in which services say that a request is too long. The
// only group, if there is one, is how much the service takes.
var overflowForms = sync.OnceValue(func() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, form := range []string{
		`prompt is too long(?::? [\d,]+ tokens > ` + num + `)?`,                                       // Anthropic
		`input length and .?max_tokens.? exceed`,                                                      // Anthropic, with what it may write
		`input is too long`,                                                                           // Bedrock
		`maximum context length(?: is| of|:)?,? \(?` + num,                                            // OpenAI, vLLM, OpenRouter, DeepSeek
		`max(?:imum)? context (?:length|size|window)`,                                                 // the same without a number
		`exceeds? the (?:model's )?(?:context window|context limit|context length)`,                   // OpenAI, Ollama
		`context (?:window|length|size)(?: is| has been|) (?:exceed|too small|full)`,                  // MiniMax, llama.cpp
		`context window of (?:this model is )?` + num,                                                 // gateways
		`input token count[^0-9]*[\d,]*\)? exceeds the maximum number of tokens allowed[^0-9]*` + num, // Gemini
		`maximum prompt length is ` + num,                                                             // xAI
		`reduce the length of (?:the|your) (?:messages|prompt|input)(?:.*limit is ` + num + `)?`,      // Groq, Cerebras
		`exceeds? the available context size(?: \(` + num + ` tokens\))?`,                             // llama.cpp
		`greater than the context length`,                                                             // LM Studio
		`context length of only ` + num,                                                               // LM Studio
		`prompt token count of [\d,]+ exceeds the limit of ` + num,                                    // GitHub Copilot
		`exceeded model token limit(?::? ` + num + `)?`,                                               // Kimi
		`range of input length should be \[\d+, ?` + num + `\]`,                                       // DashScope
		`too large for model with ` + num + ` maximum context length`,                                 // Mistral
		`tokens in request more than max tokens allowed`,                                              // Mistral
		`context length is only ` + num,                                                               // vLLM
		`longer than the (?:maximum model length|model's context length)(?: of)? \(?` + num,           // vLLM, SGLang
		`maximum model length`,                                                                        // vLLM
		`exceeds the maximum allowed input length of ` + num,                                          // Poolside
		`configured context size is ` + num,                                                           // local servers
		`prompt too long`,                                                                             // Ollama
		`exceeds max_(?:seq|model)_len(?:gth)? ` + num,                                                // local servers
		`prompt exceeds (?:the )?(?:max|length)`,                                                      // GLM
		`must be <= ` + num + `\. Given`,                                                              // Together, TGI
		`must have less than ` + num + ` tokens`,                                                      // Hugging Face
		`too many (?:input )?tokens`,                                                                  // several
		`token limit exceeded|exceeds? (?:the )?token limit`,                                          // several
		`contextwindowexceedederror`,                                                                  // LiteLLM
		`request entity too large`,                                                                    // proxies
		`context_length_exceeded|exceed_context_size_error|model_context_window_exceeded`,             // wrapped
	} {
		list = append(list, regexp.MustCompile(`(?i)`+form))
	}
	return list
})

var (
	// contextSize is the size of the context as llama.cpp gives it.
	contextSize = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\?"n_ctx\\?"\s*:\s*(\d+)`) })

	// inputAndOutput is what Anthropic says when input and output together are too long.
	inputAndOutput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)exceed context limit: ([\d,]+) \+ ([\d,]+) > ([\d,]+)`)
	})

	// throttling fits what speaks of tokens and means how many there are in a minute.
	throttling = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)throttl|rate.?limit|too many requests|per (?:minute|day|hour)|quota|please wait|\btpm\b|maximum output|characters`)
	})
)

// overflow reports whether a request was refused for its length.
func (c Complaint) overflow() bool {
	if c.is(overflowCodes...) {
		return true
	}
	switch {
	case c.Status == http.StatusTooManyRequests, c.Status == http.StatusUnauthorized, c.Status == http.StatusForbidden, c.Status == http.StatusNotFound:
		return false
	case c.Status == http.StatusRequestEntityTooLarge:
		return true
	case c.Status == http.StatusBadRequest && len(strings.TrimSpace(string(c.Body))) == 0 && c.Message == "":
		return true // Cerebras and Mistral say nothing at all
	}
	text := c.allText()
	if throttling().MatchString(c.Message) {
		return false
	}
	for _, form := range overflowForms() {
		if form.MatchString(text) {
			return true
		}
	}
	return false
}

// allText is what a service said, with what it wrapped.
func (c Complaint) allText() string {
	const most = 8 << 10
	return c.Message + "\n" + string(c.Body[:min(len(c.Body), most)])
}

// window is how many tokens of input the service takes, as far as it says so.
func (c Complaint) window() int64 {
	text := c.allText()
	if m := inputAndOutput().FindStringSubmatch(text); m != nil {
		return max(0, tokens(m[3])-tokens(m[2]))
	}
	if m := contextSize().FindStringSubmatch(text); m != nil {
		return tokens(m[1])
	}
	for _, form := range overflowForms() {
		if m := form.FindStringSubmatch(text); len(m) > 1 && m[1] != "" {
			return tokens(m[1])
		}
	}
	return 0
}

func tokens(s string) int64 {
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(s), 10, 64)
	if err != nil || n < minWindow {
		return 0
	}
	return n
}

// minWindow is the smallest window that is believed: less is a number of something else.
const minWindow = 256
