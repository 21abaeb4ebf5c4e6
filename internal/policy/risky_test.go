package policy

import (
	"strings"
	"testing"
)

// A permission for the beginning of a command does not cover options behind it that write a file or run
// a program, in whatever form the program takes them.
func TestPermissionsKnowRiskyOptions(t *testing.T) {
	for prefix, tt := range map[string]struct{ asks, runs string }{
		"git log": {
			asks: "--output=f|--output f|--outpu=f|-p --ext-diff|--ext|--textconv|--textc|--show-signature|--format=%G?|--format=%GK|--stdin|-- --output=f|*|--no-such-option",
			runs: "|--oneline -5|-p --stat main..x -- a.go|--text|-S word|--author=me",
		},
		"git diff":         {asks: "--output=f|--ext-diff|--textconv|--remerge-diff", runs: "|--cached|HEAD~1 -- f|--no-ext-diff"},
		"git show":         {asks: "--output=f HEAD", runs: "HEAD|--stat HEAD"},
		"git status":       {asks: "--submodule", runs: "-s"},
		"git grep":         {asks: "-O x|-Oless x|--open-files-in-pager x|--open x|-nO x|--textconv x", runs: "-n x|--text x|-e x -- ./*.go"},
		"git branch":       {asks: "--edit-description|--edit", runs: "|-a|new|-d old"},
		"git push":         {asks: "--receive-pack=x|--exec=x origin", runs: "origin main|--force-with-lease"},
		"git fetch":        {asks: "--upload-pack=x", runs: "origin|--all --prune"},
		"git rebase":       {asks: "-x make main|--exec make main|-ix make", runs: "main|--continue"},
		"git archive":      {asks: "-o f HEAD|--output=f HEAD", runs: "HEAD"},
		"git format-patch": {asks: "-o d|--output-directory=d", runs: "--stdout main"},
		"git difftool":     {asks: "-x rm|--extcmd=rm|-t vimdiff", runs: ""},
		"git bisect":       {asks: "run make", runs: "start|good"},
		"git submodule":    {asks: "foreach rm x", runs: "status"},
		"git config":       {asks: "core.pager x|--global alias.x !x|--unset a.b", runs: "--get a.b|--list|get a.b"},
		"git":              {asks: "-c core.pager=x log|--exec-path=x log|--git-dir=x log|-p log|log --output=f|-C d log --output=f|--config-env=a=b log", runs: "log|-C d log --oneline|--no-pager diff|pull"},

		"find":    {asks: ". -exec rm x +|. -execdir x|. -ok x|. -okdir x|. -delete|. -fprint f|. -fprintf f x|. -fprint0 f|. -fls f|. -name x -delete|. *", runs: ".|. -name x|. -type f -newer y"},
		"find .":  {asks: "-delete|-exec rm x +", runs: "-name x"},
		"rg":      {asks: "--pre=x y|--pre x y|-z x|--search-zip x|--hostname-bin=x y", runs: "x|-n x d|--glob x y"},
		"sort":    {asks: "-o f|-of|-uo f|--output=f|--outp f|--o=f|--compress-program=x|-T d|*", runs: "|-u f|-k2,2 -n f|./*|--reverse f"},
		"tree":    {asks: "-o f|-ao f|-R|--output f", runs: "|-L 2 d|-a"},
		"sed":     {asks: "-i s/a/b/ f|--in-place s/a/b/ f|-n -i p f|w\\ f g|1w\\ f g|s/a/b/w\\ f g|s/a/b/e g|e\\ x|-f s g|-e p|-n 1e\\ x g|-s -i p", runs: "-n 1,5p f|s/a/b/g f|-n /where/p f|-E s/a+e/w/ f|'1d;$p' f|'2!d' f"},
		"sed -n":  {asks: "-i 1p f|w\\ f", runs: "1,5p f|/x/p f"},
		"tar":     {asks: "-xf a --to-command=x|-I x -xf a|--use-compress-program=x -xf a|-xf a --checkpoint-action=exec=x|-cf a -F x", runs: "-xzf a|tf a|-czf a d"},
		"date":    {asks: "-s x|--set=x", runs: "|-u +%F"},
		"fd":      {asks: "-x rm|-X rm|--exec rm|--exec-b rm", runs: "x|-e go"},
		"less":    {asks: "-o f g|-Of g|--log-file=f g|+!x f", runs: "f"},
		"uniq":    {asks: "a b|-c a b", runs: "|a|-c a"},
		"go test": {asks: "-exec x ./...|--exec=x|-toolexec=x|-o f|-overlay=f", runs: "./...|-run X -v ./a|-count=1"},
		"go env":  {asks: "-w A=b", runs: "|GOPATH"},
		"gofmt":   {asks: "-w f|-l -w f", runs: "-l f|-d f"},
		"gh api":  {asks: "-X DELETE x|--method=POST x|-f a=b x|-Fa=b x|--input f x", runs: "x|--jq .a x"},
		"yq":      {asks: "-i x f|--inplace x f", runs: "x f"},
		"xxd":     {asks: "-r a b|-revert a b", runs: "a"},

		"env":              {asks: "ls|A=b make|-i sh|git log --output=f", runs: ""},
		"env ls":           {asks: "", runs: "|-l"},
		"env git log":      {asks: "--output=f", runs: "|--oneline"},
		"xargs":            {asks: "rm|-0 rm|grep x", runs: ""},
		"xargs grep":       {asks: "", runs: "x|-l x"},
		"xargs sort":       {asks: "-o f", runs: "-u"},
		"timeout 60":       {asks: "rm x", runs: ""},
		"timeout 60 go":    {asks: "test", runs: ""},
		"nice":             {asks: "rm x", runs: ""},
		"make":             {asks: "--eval=x|-E x", runs: "|-n all|CC=gcc"},
		"./build.sh":       {asks: "", runs: "|--output=f -o x"},
		"git log --output": {asks: "x --ext-diff", runs: "f"},
	} {
		rules := []PrefixRule{NewPrefix(strings.Fields(prefix))}
		check := func(rest string, want PrefixDecision) {
			t.Helper()
			for r := range strings.SplitSeq(rest, "|") {
				script := strings.TrimSpace(prefix + " " + r)
				if got, _ := decidePrefix(rules, bash(script)); got.Decision != want && !(want == "" && r == "") {
					t.Errorf("allowed is %q; %q: %q, want %q", prefix, script, got.Decision, want)
				}
			}
		}
		check(tt.asks, "")
		if tt.runs != "" {
			check(tt.runs, PrefixAllow)
		}
		for _, decision := range []PrefixDecision{PrefixForbid, PrefixPrompt} { // a rule that restricts covers them
			rule := NewPrefix(strings.Fields(prefix))
			rule.Decision = decision
			for r := range strings.SplitSeq(tt.asks, "|") {
				if got, _ := decidePrefix([]PrefixRule{rule}, bash(prefix+" "+r)); got.Decision != decision {
					t.Errorf("%s %q: %q %q", decision, prefix, r, got.Decision)
				}
			}
		}
	}
}

// Nothing is offered that would not cover the command at hand.
func TestNothingRiskyIsOffered(t *testing.T) {
	for _, script := range []string{"git log --output=f", "sort -o f g", "go test -exec x ./...", "tree -o f", "git -c a=b log", "tar -xf a --to-command=x", "gh api x -X DELETE"} {
		if offer, ok := OfferPrefix(bash(script)); ok {
			rule, _ := decidePrefix([]PrefixRule{NewPrefix(offer)}, bash(script))
			t.Errorf("%s: offered %q, which decides %q", script, offer, rule.Decision)
		}
	}
}
