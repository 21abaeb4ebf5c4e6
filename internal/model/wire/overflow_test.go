package wire

import (
	"strconv"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

// The forms in which services refuse a request for its length, as their documentation
// and their users' reports have them, and the window that each names.
func TestOverflowForms(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		window int64
	}{
		"OpenAI":                   {400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 0},
		"OpenAI chat":              {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens. Please reduce the length of the messages.","code":"context_length_exceeded"}}`, 8192},
		"OpenAI, a string":         {400, `{"error":{"message":"Invalid 'input[2].output': string too long. Expected a string with maximum length 10485760","code":"string_above_max_length"}}`, 0},
		"Azure":                    {400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 128000},
		"Anthropic":                {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`, 200000},
		"Anthropic with output":    {400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 170636 + 34048 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, 165952},
		"Anthropic, bytes":         {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, 0},
		"Bedrock":                  {400, `{"message":"Input is too long for requested model."}`, 0},
		"Gemini":                   {400, `[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`, 1048575},
		"Gemini, newer":            {400, `{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}`, 1048576},
		"xAI":                      {400, `{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, 131072},
		"Groq":                     {400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 0},
		"Groq, too large":          {413, `{"error":{"message":"Request too large for model"}}`, 0},
		"Cerebras":                 {400, `{"message":"Please reduce the length of the messages or completion. Current length is 9012 while limit is 8192","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`, 8192},
		"Cerebras without a body":  {400, ``, 0},
		"Mistral":                  {400, `{"object":"error","message":"Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt"}`, 32768},
		"Mistral, older":           {400, `{"object":"error","message":"Too many tokens in request: tokens in request more than max tokens allowed","type":"invalid_request"}`, 0},
		"DeepSeek":                 {400, `{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (132000 in the messages, 8000 in the completion).","type":"invalid_request_error","code":"invalid_request_error"}}`, 131072},
		"Kimi":                     {400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)","type":"invalid_request_error"}}`, 262144},
		"GLM":                      {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, 0},
		"DashScope":                {400, `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"}}`, 129024},
		"MiniMax":                  {400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}`, 0},
		"llama.cpp":                {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`, 4096},
		"llama.cpp, newer":         {400, `{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"}}`, 4096},
		"llama.cpp, a full slot":   {500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, 0},
		"LM Studio":                {400, `{"error":"Trying to keep the first 8000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, 4096},
		"LM Studio, other":         {400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}`, 0},
		"vLLM":                     {400, `{"object":"error","message":"This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens.","type":"BadRequestError","code":400}`, 262144},
		"vLLM, older":              {400, `{"object":"error","message":"The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that max_model_len is no smaller","code":400}`, 32768},
		"vLLM, newest":             {400, `{"error":{"message":"You passed 9000 input tokens and requested 0 output tokens. However, the model's context length is only 8192 tokens","code":400}}`, 8192},
		"SGLang":                   {400, `{"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","code":400}`, 32768},
		"SGLang with output":       {400, `{"object":"error","message":"Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens","code":400}`, 32768},
		"Ollama":                   {400, `{"error":{"message":"prompt too long; exceeded max context length by 4 tokens"}}`, 0},
		"Ollama, embedded":         {400, `{"error":"the input length exceeds the context length"}`, 0},
		"LiteLLM":                  {400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: something","type":null,"code":"400"}}`, 0},
		"OpenRouter":               {400, `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (139000 of text input). Please reduce the length of either one, or use the \"middle-out\" transform","code":400}}`, 131072},
		"OpenRouter, wrapped":      {400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}","provider_name":"X"}}}`, 200000},
		"Poolside":                 {400, `{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens."}}`, 131040},
		"in parentheses":           {400, `{"error":{"message":"Input length (265330) exceeds model's maximum context length (262144)."}}`, 262144},
		"GitHub Copilot":           {400, `{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, 128000},
		"Together":                 {422, `{"error":{"message":"Input validation error: ` + "`inputs` tokens + `max_new_tokens`" + ` must be <= 8193. Given: 9000 inputs tokens"}}`, 8193},
		"Hugging Face":             {422, `{"error":"Input validation error: ` + "`inputs`" + ` must have less than 4096 tokens. Given: 5000"}`, 4096},
		"Fireworks":                {400, `{"error":{"message":"The prompt is too long: 140000, model maximum context length: 131071","type":"invalid_request_error"}}`, 131071},
		"a local server":           {400, `{"error":{"message":"Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)"}}`, 2048},
		"another local server":     {400, `{"error":{"message":"prompt has 5,152 tokens, but the configured context size is 4,096 tokens"}}`, 4096},
		"a proxy":                  {413, `<html>413 Request Entity Too Large</html>`, 0},
		"an error inside a stream": {0, `{"error":{"code":"context_length_exceeded","message":"too long"}}`, 0},
	} {
		c := ParseComplaint([]byte(tt.body))
		if tt.status != 0 {
			c.Status = tt.status
		}
		e := c.Error()
		if e.Kind != protocol.ErrorContextLength || e.Retry || e.Window != tt.window {
			t.Errorf("%s: %s, retry %v, window %d, want %d (%s)", name, e.Kind, e.Retry, e.Window, tt.window, e.Message)
		}
	}
}

// What speaks of tokens or lengths and means something else.
func TestNoOverflow(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		kind   protocol.ErrorKind
	}{
		"throttling":          {400, `{"message":"ThrottlingException: Too many tokens, please wait before trying again."}`, protocol.ErrorRequest},
		"a rate":              {429, `{"error":{"message":"Rate limit reached for tokens per minute: too many tokens"}}`, protocol.ErrorRateLimit},
		"tokens per minute":   {400, `{"error":{"message":"Request exceeds the token limit per minute (TPM)"}}`, protocol.ErrorRequest},
		"an argument":         {400, `{"error":{"message":"Invalid 'tools[0].description': too long, at most 1024 characters"}}`, protocol.ErrorRequest},
		"an unknown model":    {404, `{"error":{"message":"The model 'maximum context length is 8192' does not exist"}}`, protocol.ErrorUnknownModel},
		"a bad key":           {401, `{"error":{"message":"context window"}}`, protocol.ErrorAuth},
		"a 400 with a body":   {400, `{"error":{"message":"bad"}}`, protocol.ErrorRequest},
		"a server that broke": {500, `{"error":{"message":"internal"}}`, protocol.ErrorModel},
	} {
		c := ParseComplaint([]byte(tt.body))
		c.Status = tt.status
		if e := c.Error(); e.Kind != tt.kind {
			t.Errorf("%s: %s, want %s", name, e.Kind, tt.kind)
		}
	}
}

// The forms in which services refuse items of the history.
func TestRefusedParts(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		part   protocol.HistoryPart
	}{
		"reasoning not found":      {404, `{"error":{"message":"Item with id 'rs_68a1b2' not found. Items are not persisted when ` + "`store`" + ` is set to false.","type":"invalid_request_error"}}`, protocol.PartReasoning},
		"reasoning alone":          {400, `{"error":{"message":"Item 'rs_68a1' of type 'reasoning' was provided without its required following item."}}`, protocol.PartReasoning},
		"encrypted content":        {400, `{"error":{"message":"The encrypted content gAAA...GDc= could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}`, protocol.PartReasoning},
		"encrypted, other code":    {400, `{"error":{"message":"The encrypted content VPy0...8OA= could not be verified. Reason: Encrypted content could not be decrypted or parsed.","code":"thinking_signature_invalid"}}`, protocol.PartReasoning},
		"signature":                {400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`, protocol.PartReasoning},
		"signature through Vertex": {400, `{"error":{"code":400,"message":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.3.content.13: Invalid signature in thinking block\"}}","status":"INVALID_ARGUMENT"}}`, protocol.PartReasoning},
		"thinking expected":        {400, `{"error":{"message":"messages.129.content.0.type: Expected ` + "`thinking` or `redacted_thinking`, but found `text`" + `."}}`, protocol.PartReasoning},
		"DeepSeek wants it":        {400, `{"error":{"message":"Missing reasoning_content field in the assistant message at message index 3"}}`, protocol.PartReasoning},
		"others do not":            {400, `{"error":{"message":"property 'messages.2.reasoning_content' is unsupported"}}`, protocol.PartReasoning},
		"image too large":          {400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.58.content.2.image.source.base64: image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"}}`, protocol.PartImages},
		"no vision at OpenRouter":  {404, `{"error":{"message":"No endpoints found that support image input","code":404}}`, protocol.PartImages},
		"no vision at DeepSeek":    {400, `{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[0]: unknown variant ` + "`image_url`, expected `text`" + `"}}`, protocol.PartImages},
		"no vision at llama.cpp":   {500, `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}}`, protocol.PartImages},
		"no vision at OpenAI":      {400, `{"error":{"message":"Invalid content type. image_url is only supported by certain models."}}`, protocol.PartImages},
		"a broken image":           {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}`, protocol.PartImages},
		"an invalid image":         {400, `{"error":{"message":"The image data you provided does not represent a valid image.","code":"invalid_image_format"}}`, protocol.PartImages},
	} {
		c := ParseComplaint([]byte(tt.body))
		c.Status = tt.status
		if e := c.Error(); e.Kind != protocol.ErrorHistory || e.Part != tt.part || e.Call != nil || e.Retry {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestLimits(t *testing.T) {
	soon := time.Now().Add(2 * time.Hour)
	for name, tt := range map[string]struct {
		c     Complaint
		kind  protocol.ErrorKind
		after time.Duration
		retry bool
	}{
		"seconds in the message":      {Complaint{Status: 429, Message: "Please try again in 1.5s."}, protocol.ErrorRateLimit, 1500 * time.Millisecond, true},
		"minutes in the message":      {Complaint{Status: 429, Message: "Rate limit reached. Please try again in 7m12.5s. Need more?"}, protocol.ErrorRateLimit, 7*time.Minute + 12500*time.Millisecond, true},
		"hours in the message":        {Complaint{Status: 429, Message: "try again in 2 hours and 5 minutes"}, protocol.ErrorRateLimit, 2*time.Hour + 5*time.Minute, true},
		"days":                        {Complaint{Type: "usage_limit_reached", Message: "try again in 2 days 3 hours"}, protocol.ErrorUsageLimit, 51 * time.Hour, false},
		"the plan's limit":            {ParseComplaint([]byte(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":602705}}`)), protocol.ErrorUsageLimit, 602705 * time.Second, false},
		"no credit":                   {Complaint{Status: 402, Message: "Insufficient credits"}, protocol.ErrorUsageLimit, 0, false},
		"no credit, a rate's header":  {Complaint{Status: 429, Code: "insufficient_quota", After: time.Second}, protocol.ErrorUsageLimit, 0, false},
		"no credit at Anthropic":      {Complaint{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."}, protocol.ErrorUsageLimit, 0, false},
		"Google":                      {Complaint{Status: 429, Message: "Resource exhausted", After: 32 * time.Second}, protocol.ErrorRateLimit, 32 * time.Second, true},
		"a reset that is far away":    {Complaint{Status: 429, Message: "limited", Resets: 3 * time.Hour}, protocol.ErrorUsageLimit, 3 * time.Hour, false},
		"a status inside the stream":  {ParseComplaint([]byte(`{"error":{"code":400,"message":"bad"}}`)), protocol.ErrorRequest, 0, false},
		"and one worth another try":   {ParseComplaint([]byte(`{"error":{"code":503,"message":"busy"}}`)), protocol.ErrorModel, 0, true},
		"a call that Groq cannot use": {Complaint{Status: 400, Code: "tool_use_failed", Message: "Failed to call a function."}, protocol.ErrorModel, 0, true},
	} {
		e := tt.c.Error()
		if e.Kind != tt.kind || e.After != tt.after || e.Retry != tt.retry {
			t.Errorf("%s: %s after %v, retry %v; want %s after %v, %v", name, e.Kind, e.After, e.Retry, tt.kind, tt.after, tt.retry)
		}
	}
	at := ParseComplaint([]byte(`{"error":{"type":"usage_limit_reached","message":"x","resets_at":` + strconv.FormatInt(soon.Unix(), 10) + `}}`)).Error()
	if at.After < 119*time.Minute || at.After > 2*time.Hour {
		t.Errorf("resets_at: after %v", at.After)
	}
	google := ParseComplaint([]byte(`{"error":{"code":429,"message":"x","details":[{"@type":"a"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"32s"}]}}`)).Error()
	if google.After != 32*time.Second {
		t.Errorf("retryDelay: after %v", google.After)
	}
}

func TestGatewaysSayWhatTheServiceSaid(t *testing.T) {
	e := ParseComplaint([]byte(`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"temperature must be 1\"}}","provider_name":"X"}}}`)).Error()
	if e.Message != "Provider returned error: temperature must be 1" || e.Kind != protocol.ErrorRequest {
		t.Errorf("%+v", e)
	}
}
