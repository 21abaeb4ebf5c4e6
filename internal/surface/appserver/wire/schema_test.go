package wire

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	codexPath = flag.String("codex", "", "compare testdata/codex.txt with what this program says of its protocol")
	update    = flag.Bool("update", false, "with -codex: write testdata/codex.txt")
)

const factsFile = "testdata/codex.txt"

// additions are members that Codex does not have.
var additions = words(`
	AgentMessage.partial Queued.paused Thread.returnedInput ThreadOpened.seq Turn.abortReason Turn.returnedInput
	TurnStart.returnedInput TurnStart.whenBusy TurnStarted.state`)

// leftOut are members that are always there in Codex and may be missing here. All but that of ConfigLayer are sent by clients, which may leave them out.
var leftOut = words(`ConfigEdit.mergeStrategy ConfigLayer.config Decision.action Decision.decision`)

// own are types that Codex has none of: what its messages share here, and what it leaves to any JSON.
var own = words(`Amendment Empty Item None Paging ReturnedInput ToolHints`)

// The types by the definitions of Codex that they stand for. One that stands for several may have the members of all.
var types = []struct {
	value any
	names string
}{
	{Account{}, "GetAccountResponse"},
	{AccountRead{}, "GetAccountParams"},
	{AgentMessage{}, "ThreadItem/agentMessage"},
	{Allowed{}, "ConfigRequirements"},
	{Capabilities{}, "InitializeCapabilities"},
	{ClientInfo{}, "ClientInfo"},
	{CollaborationMode{}, "CollaborationMode"},
	{CommandAction{}, "CommandAction"},
	{CommandApproval{}, "CommandExecutionRequestApprovalParams"},
	{CommandDone{}, "CommandExecResponse"},
	{CommandExec{}, "CommandExecParams"},
	{CommandExecution{}, "ThreadItem/commandExecution"},
	{ConfigAnswer{}, "ConfigReadResponse"},
	{ConfigEdit{}, "ConfigEdit"},
	{ConfigLayer{}, "ConfigLayer"},
	{ConfigRead{}, "ConfigReadParams"},
	{ConfigValueWrite{}, "ConfigValueWriteParams"},
	{ConfigWarning{}, "ConfigWarningNotification"},
	{ConfigWrite{}, "ConfigBatchWriteParams"},
	{ConfigWritten{}, "ConfigWriteResponse"},
	{ContextCompaction{}, "ThreadItem/contextCompaction"},
	{Decision{}, "CommandExecutionRequestApprovalResponse FileChangeRequestApprovalResponse McpServerElicitationRequestResponse"},
	{Deleted{}, "ThreadQueueDeleteResponse"},
	{Delta{}, "PlanDeltaNotification CommandExecutionOutputDeltaNotification AgentMessageDeltaNotification"},
	{DiffUpdated{}, "TurnDiffUpdatedNotification"},
	{DynamicToolCall{}, "ThreadItem/dynamicToolCall"},
	{EffortOption{}, "ReasoningEffortOption"},
	{Elicitation{}, "McpServerElicitationRequestParams"},
	{Failure{}, "ErrorNotification"},
	{FileApproval{}, "FileChangeRequestApprovalParams"},
	{FileChange{}, "ThreadItem/fileChange"},
	{FileUpdate{}, "FileUpdateChange"},
	{GitInfo{}, "GitInfo"},
	{Goal{}, "ThreadGoalGetResponse"},
	{IDs{}, "ThreadLoadedListResponse"},
	{ImageView{}, "ThreadItem/imageView"},
	{Initialize{}, "InitializeParams"},
	{Initialized{}, "InitializeResponse"},
	{ItemCompleted{}, "ItemCompletedNotification"},
	{ItemEntry{}, "ThreadItemEntry"},
	{ItemStarted{}, "ItemStartedNotification"},
	{Items{}, "ThreadItemsListResponse"},
	{ItemsList{}, "ThreadItemsListParams"},
	{LayerName{}, "ConfigLayerSource"},
	{MCPError{}, "McpToolCallError"},
	{MCPResult{}, "McpToolCallResult"},
	{MCPToolCall{}, "ThreadItem/mcpToolCall"},
	{ModeChoice{}, "CollaborationModeMask"},
	{ModeSettings{}, "Settings"},
	{Model{}, "Model"},
	{ModelList{}, "ModelListParams"},
	{Models{}, "ModelListResponse"},
	{Modes{}, "CollaborationModeListResponse"},
	{NameSet{}, "ThreadSetNameParams"},
	{NameUpdated{}, "ThreadNameUpdatedNotification"},
	{NoEffect{}, "ThreadStartParams TurnStartParams ThreadForkParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{Overrides{}, "ThreadStartParams TurnStartParams ThreadForkParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{PlanStep{}, "TurnPlanStep"},
	{PlanUpdated{}, "TurnPlanUpdatedNotification"},
	{Profile{}, "PermissionProfileSummary"},
	{Profiles{}, "PermissionProfileListResponse"},
	{QueueAdd{}, "ThreadQueueAddParams"},
	{QueueDelete{}, "ThreadQueueDeleteParams"},
	{QueueList{}, "ThreadQueueListParams"},
	{QueueReorder{}, "ThreadQueueReorderParams"},
	{QueueStart{}, "ThreadQueueStartParams"},
	{QueueUpdate{}, "ThreadQueueUpdateParams"},
	{Queued{}, "ThreadQueueListResponse"},
	{QueuedOne{}, "ThreadQueueAddResponse ThreadQueueUpdateResponse"},
	{QueuedSubmission{}, "QueuedSubmission"},
	{Reasoning{}, "ThreadItem/reasoning"},
	{RequestResolved{}, "ServerRequestResolvedNotification"},
	{Requirements{}, "ConfigRequirementsReadResponse"},
	{Reverted{}, "ThreadRevertResponse"},
	{ReviewMode{}, "ThreadItem/enteredReviewMode ThreadItem/exitedReviewMode"},
	{ReviewStart{}, "ReviewStartParams"},
	{ReviewStarted{}, "ReviewStartResponse"},
	{ReviewTarget{}, "ReviewTarget"},
	{SandboxPolicy{}, "SandboxPolicy"},
	{ServerInfo{}, "McpServerInfo"},
	{ServerStatus{}, "McpServerStatus"},
	{ServerStatusList{}, "ListMcpServerStatusParams"},
	{ServerStatuses{}, "ListMcpServerStatusResponse"},
	{ServerTool{}, "Tool"},
	{SettingsUpdated{}, "ThreadSettingsUpdatedNotification"},
	{ShellCommand{}, "ThreadShellCommandParams"},
	{Skill{}, "SkillMetadata"},
	{Skills{}, "SkillsListResponse"},
	{SkillsEntry{}, "SkillsListEntry"},
	{SkillsList{}, "SkillsListParams"},
	{StatusChanged{}, "ThreadStatusChangedNotification"},
	{SummaryDelta{}, "ReasoningSummaryTextDeltaNotification"},
	{SummaryPart{}, "ReasoningSummaryPartAddedNotification"},
	{Terminal{}, "ThreadBackgroundTerminal"},
	{TerminalEnd{}, "ThreadBackgroundTerminalsTerminateParams"},
	{Terminals{}, "ThreadBackgroundTerminalsListResponse"},
	{Terminated{}, "ThreadBackgroundTerminalsTerminateResponse"},
	{Thread{}, "Thread"},
	{ThreadAnswer{}, "ThreadReadResponse ThreadUnarchiveResponse"},
	{ThreadFork{}, "ThreadForkParams ThreadStartParams TurnStartParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{ThreadList{}, "ThreadListParams ThreadSearchParams"},
	{ThreadName{}, "ThreadUnsubscribeParams ThreadArchiveParams"},
	{ThreadOpened{}, "ThreadStartResponse ThreadResumeResponse ThreadForkResponse"},
	{ThreadRead{}, "ThreadReadParams"},
	{ThreadRef{}, "ThreadArchivedNotification ThreadUnarchivedNotification ThreadClosedNotification"},
	{ThreadResume{}, "ThreadForkParams ThreadStartParams TurnStartParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{ThreadRevert{}, "ThreadRevertParams"},
	{ThreadSettings{}, "ThreadSettings"},
	{ThreadSettingsUpdate{}, "ThreadForkParams ThreadStartParams TurnStartParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{ThreadStart{}, "ThreadForkParams ThreadStartParams TurnStartParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{ThreadStarted{}, "ThreadStartedNotification"},
	{ThreadStatus{}, "ThreadStatus"},
	{ThreadTokenUsage{}, "ThreadTokenUsage"},
	{Threads{}, "ThreadListResponse"},
	{TokenUsage{}, "TokenUsageBreakdown"},
	{ToolContent{}, "DynamicToolCallOutputContentItem"},
	{Turn{}, "Turn"},
	{TurnChanged{}, "TurnStartedNotification TurnCompletedNotification"},
	{TurnError{}, "TurnError"},
	{TurnInterrupt{}, "TurnInterruptParams"},
	{TurnName{}, "TurnSteerResponse"},
	{TurnStart{}, "ThreadForkParams ThreadStartParams TurnStartParams ThreadResumeParams ThreadSettingsUpdateParams"},
	{TurnStarted{}, "TurnStartResponse"},
	{TurnSteer{}, "TurnSteerParams"},
	{Turns{}, "ThreadTurnsListResponse"},
	{TurnsList{}, "ThreadTurnsListParams"},
	{Unsubscribed{}, "ThreadUnsubscribeResponse"},
	{UpdateKind{}, "PatchChangeKind"},
	{UsageUpdated{}, "ThreadTokenUsageUpdatedNotification"},
	{UserInput{}, "UserInput"},
	{UserMessage{}, "ThreadItem/userMessage"},
	{Warning{}, "WarningNotification"},
	{WebAction{}, "WebSearchAction"},
	{WebSearch{}, "ThreadItem/webSearch"},
	{AccountKind{}, "Account"},
}

func words(s string) []string { return strings.Fields(s) }

// Every member of every type is one that Codex has, of the same kind, or is listed as ours; and what Codex always sends is there.
func TestTypesAreThoseOfCodex(t *testing.T) {
	facts := readFacts(t)
	var added, missing []string
	for _, typ := range types {
		of := reflect.TypeOf(typ.value)
		got := membersOf(of)
		want := map[string]fact{}
		for _, name := range words(typ.names) {
			def, ok := facts[name]
			if !ok {
				t.Errorf("%s: there is no definition %s; see -update", of.Name(), name)
			}
			for member, f := range def {
				want[member] = f
				if m, ok := got[member]; f.required && !strings.HasSuffix(name, "Params") && (!ok || m.omitted) {
					missing = append(missing, of.Name()+"."+member)
				}
			}
		}
		for name, m := range got {
			f, ok := want[name]
			if !ok {
				added = append(added, of.Name()+"."+name)
			} else if !f.takes(m.kind) {
				t.Errorf("%s.%s is a %s here, and a %s in Codex", of.Name(), name, m.kind, f.kind)
			}
		}
	}
	compare(t, "additions", additions, added)
	compare(t, "leftOut", leftOut, missing)
}

func compare(t *testing.T, list string, want, got []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Compact(got)); d != "" {
		t.Errorf("%s (-listed +found):\n%s", list, d)
	}
}

// No type is forgotten here.
func TestEveryTypeIsCompared(t *testing.T) {
	var listed, found []string
	for _, typ := range types {
		listed = append(listed, reflect.TypeOf(typ.value).Name())
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				if _, ok := spec.Type.(*ast.StructType); ok {
					found = append(found, spec.Name.Name)
				}
			}
			return true
		})
	}
	compare(t, "types and own", append(listed, own...), found)
}

// What is kept here of Codex's protocol is what the installed Codex says of it.
func TestFactsAreThoseOfTheInstalledCodex(t *testing.T) {
	program := *codexPath
	if program == "" {
		t.Skip("-codex names no program")
	}
	text := askCodex(t, program)
	if *update {
		if err := os.WriteFile(factsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(factsFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(kept), text); d != "" {
		t.Errorf("testdata/codex.txt (-kept +installed):\n%s", d)
	}
}

// A fact is what is known of a member of a definition.
type fact struct {
	kind     string // as in JSON Schema; "any" if there are several
	required bool
}

func (f fact) takes(kind string) bool {
	return f.kind == kind || f.kind == "any" || kind == "any" || f.kind == "number" && kind == "integer"
}

func readFacts(t *testing.T) map[string]map[string]fact {
	t.Helper()
	text, err := os.ReadFile(factsFile)
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]map[string]fact{}
	for line := range strings.Lines(string(text)) {
		name, members, _ := strings.Cut(strings.TrimSpace(line), ":")
		facts[name] = map[string]fact{}
		for _, m := range words(members) {
			member, kind, _ := strings.Cut(m, "=")
			kind, required := strings.CutSuffix(kind, "!")
			facts[name][member] = fact{kind, required}
		}
	}
	return facts
}

// A member is one of a Go type.
type member struct {
	kind    string
	omitted bool // when it is empty
}

func membersOf(t reflect.Type) map[string]member {
	all := map[string]member{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, named := f.Tag.Lookup("json")
		name, option, _ := strings.Cut(tag, ",")
		if f.Anonymous && !named {
			maps.Copy(all, membersOf(f.Type))
		} else if f.IsExported() && name != "-" {
			all[name] = member{kindOf(f.Type), strings.Contains(option, "omit")}
		}
	}
	return all
}

func kindOf(t reflect.Type) string {
	marshaler, unmarshaler := reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler]()
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return "any"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return "any"
}

// A schema is what is read of a JSON Schema.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"`
	Enum        []any              `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	OneOf       []*schema          `json:"oneOf"`
	AnyOf       []*schema          `json:"anyOf"`
	AllOf       []*schema          `json:"allOf"`
	Definitions schemas            `json:"definitions"`
}

// UnmarshalJSON reads true as the schema that takes everything.
func (s *schema) UnmarshalJSON(text []byte) error {
	type plain schema
	if string(text) == "true" {
		return nil
	}
	return json.Unmarshal(text, (*plain)(s))
}

type schemas map[string]*schema

// askCodex has Codex describe its protocol, and returns the facts of the definitions that types name: a line for each.
func askCodex(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "app-server", "generate-json-schema", "--experimental", "--out", dir)
	cmd.Env = append(os.Environ(), "CODEX_HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := schemas{}
	for _, name := range []string{"codex_app_server_protocol.schemas.json", "codex_app_server_protocol.v2.schemas.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var file schema
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, file.Definitions)
	}
	wanted := map[string]bool{}
	for _, typ := range types {
		for _, name := range words(typ.names) {
			wanted[name] = true
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		facts := all.facts(name)
		fmt.Fprintf(&b, "%s:", name)
		for _, member := range slices.Sorted(maps.Keys(facts)) {
			mark := ""
			if facts[member].required {
				mark = "!"
			}
			fmt.Fprintf(&b, " %s=%s%s", member, facts[member].kind, mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// facts returns the members of a definition, or of one of its variants: "ThreadItem/plan" is that whose type is "plan".
func (all schemas) facts(name string) map[string]fact {
	name, variant, _ := strings.Cut(name, "/")
	facts := map[string]fact{}
	parts := all.variants(all[name])
	count := map[string]int{}
	for _, part := range parts {
		if typ := part.Properties["type"]; variant != "" && (typ == nil || !slices.Contains(typ.Enum, any(variant))) {
			continue
		}
		count[""]++
		for member, s := range part.Properties {
			kind := all.kind(s)
			if old, ok := facts[member]; ok && old.kind != kind {
				kind = "any"
			}
			facts[member] = fact{kind: kind}
			if slices.Contains(part.Required, member) {
				count[member]++
			}
		}
	}
	for member, f := range facts {
		facts[member] = fact{f.kind, count[member] == count[""]}
	}
	return facts
}

// variants are the objects that a definition may be.
func (all schemas) variants(s *schema) (list []*schema) {
	switch {
	case s == nil:
		return nil
	case s.Ref != "":
		return all.variants(all[s.Ref[strings.LastIndex(s.Ref, "/")+1:]])
	}
	common := s
	for _, v := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		for _, part := range all.variants(v) {
			both := &schema{Properties: maps.Clone(part.Properties), Required: slices.Concat(part.Required, common.Required)}
			if both.Properties == nil {
				both.Properties = map[string]*schema{}
			}
			maps.Copy(both.Properties, common.Properties)
			list = append(list, both)
		}
	}
	if list == nil && s.Properties != nil {
		list = []*schema{s}
	}
	return list
}

// kind is that of the values that a schema takes, null aside.
func (all schemas) kind(s *schema) string {
	kinds := map[string]bool{}
	switch typ := s.Type.(type) {
	case string:
		kinds[typ] = true
	case []any:
		for _, k := range typ {
			kinds[k.(string)] = true
		}
	}
	if s.Ref != "" {
		kinds[all.kind(all[s.Ref[strings.LastIndex(s.Ref, "/")+1:]])] = true
	}
	if s.Type == nil {
		for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
			kinds[all.kind(part)] = true
		}
	}
	delete(kinds, "null")
	if len(kinds) != 1 {
		return "any"
	}
	return slices.Collect(maps.Keys(kinds))[0]
}
