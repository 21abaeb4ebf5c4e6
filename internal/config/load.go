package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/config/codex"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A rank is how strong a value is. Between the sources people know there are
// finer steps.
type rank int

const (
	rankDefault rank = iota
	rankEnvironment
	rankFile
	rankProfile         // in the file
	rankProfileOverride // a profile's key set with -c
	rankMode            // what --oss and --demo imply unless -c or a flag says otherwise
	rankOverride
	rankBundle // a flag that stands for several others
	rankFlag
)

// A setting is a value with its origin.
type setting struct {
	key    *key
	path   []string
	names  []string // what the stars of the key stand for
	value  any
	source Source
	rank   rank
	direct bool // set by its own name rather than by an alias
}

func (s *setting) beats(t *setting) bool {
	if s.rank != t.rank {
		return s.rank > t.rank
	}
	return s.direct || !t.direct
}

// A loader puts one Config together.
type loader struct {
	options  Options
	home     string
	file     string // empty if there is none
	settings map[string]*setting
	warnings []Warning
	errs     []*Error
}

// A layer is one place that values come from.
type layer struct {
	rank   rank
	source Source // without the line
	paths  resolver
	prefix []string // of the keys, for people
	ignore bool     // check only
}

func (l *loader) load(text []byte) *Config {
	file, override := l.parseFile(text), l.parseOverrides()
	profile, from := l.profileName(file, override)

	l.settings = make(map[string]*setting, 128) // the defaults are almost as many
	l.addDefaults()
	l.addEnvironment()
	inFile := layer{rank: rankFile, source: Source{Kind: FromFile, File: l.file}, paths: l.resolver(l.home)}
	inOverride := layer{rank: rankOverride, source: Source{Kind: FromOverride}, paths: l.resolver(l.options.Cwd)}
	l.add(file, inFile)
	l.add(override, inOverride)
	found := l.addProfiles(file, inFile, rankProfile, profile)
	found = l.addProfiles(override, inOverride, rankProfileOverride, profile) || found
	if profile != "" && !found {
		l.unknownProfile(profile, from, file, override)
	}
	if profile != "" {
		l.keep(&setting{key: schema().find([]string{"profile"}), path: []string{"profile"}, value: profile, source: from, rank: rankFlag})
	}
	l.addFlags()
	l.shareOllama()
	if len(l.errs) > 0 {
		return nil
	}
	c := l.build()
	c.profileGivenForThisRun = from.Kind >= FromOverride
	return c
}

func (l *loader) resolver(base string) resolver {
	return resolver{base: base, home: userHome(l.options.Env)}
}

func (l *loader) parseFile(text []byte) *node {
	if l.file == "" {
		return &node{}
	}
	n, f := parse(text)
	if f == nil {
		return n
	}
	l.fail(Problem{
		Source: Source{Kind: FromFile, File: l.file, Line: f.line, Column: f.column}, Key: f.key, Text: f.text,
	})
	return &node{}
}

func (l *loader) parseOverrides() *node {
	root := &node{}
	for _, arg := range l.options.Overrides {
		path, v, err := parseOverride(arg)
		if err != nil {
			l.fail(Problem{Source: Source{Kind: FromOverride}, Text: err.Error()})
			continue
		}
		root.set(path, v)
	}
	return root
}

// profileName says which profile is wanted, and by whom. A value of the wrong
// type is reported where all keys are looked at.
func (l *loader) profileName(file, override *node) (string, Source) {
	if l.options.Profile != "" {
		return l.options.Profile, Source{Kind: FromFlag, Name: "--profile"}
	}
	if n, ok := override.child["profile"]; ok {
		name, _ := n.value.(string)
		return name, Source{Kind: FromOverride}
	}
	if n, ok := file.child["profile"]; ok {
		name, _ := n.value.(string)
		return name, Source{Kind: FromFile, File: l.file}.at(n.begin)
	}
	return "", Source{}
}

func (l *loader) unknownProfile(name string, from Source, trees ...*node) {
	var known []string
	for _, tree := range trees {
		if n, ok := tree.child["profiles"]; ok {
			known = append(known, n.names...)
		}
	}
	text := fmt.Sprintf("there is no profile %s", quote(name))
	if near := humanize.Nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", quote(near))
	} else if len(known) > 0 {
		text += "; there are " + strings.Join(known, ", ")
	}
	key := "profile"
	if from.Kind == FromFlag {
		key = "" // the flag says it
	}
	l.fail(Problem{Source: from, Key: key, Text: text})
}

func (l *loader) addProfiles(tree *node, in layer, r rank, wanted string) bool {
	profiles, ok := tree.child["profiles"]
	if !ok {
		return false
	}
	in.prefix = []string{"profiles"}
	if !profiles.isTable() {
		l.failAt(in, profiles, nil, "must be a table, not "+describe(profiles.value))
		return false
	}
	found := false
	for _, name := range profiles.names {
		in := in
		in.rank, in.prefix, in.ignore = r, []string{"profiles", name}, name != wanted
		in.source.Kind, in.source.Name = FromProfile, name
		found = found || name == wanted
		l.walk(in, schema(), profiles.child[name], nil, nil)
	}
	return found
}

// add takes all values of a tree but those of profiles.
func (l *loader) add(tree *node, in layer) {
	l.walk(in, schema(), tree, nil, nil)
}

func (l *loader) walk(in layer, b *branch, n *node, path, names []string) {
	if !n.isTable() {
		l.failAt(in, n, path, "must be a table, not "+describe(n.value))
		return
	}
	for _, name := range n.names {
		child, at := n.child[name], append(slices.Clone(path), name)
		next := b.down(name)
		if len(path) == 0 && len(in.prefix) == 0 && name == "profiles" {
			continue
		}
		if next == nil && codex.Has(at) {
			l.warnings = append(l.warnings, Warning{Problem: in.problem(at, child.at, codex.Text), Foreign: true})
			continue
		}
		if next == nil {
			l.warnAt(in, child, at, "unknown key"+l.meant(in, b, path, name))
			continue
		}
		matched := names
		if next == b.any {
			matched = append(slices.Clone(names), name)
		}
		if next.key == nil {
			l.walk(in, next, child, at, matched)
			continue
		}
		l.take(in, next.key, child, at, matched)
	}
}

// take checks one value and keeps it.
func (l *loader) take(in layer, k *key, n *node, path, names []string) {
	if k.global && len(in.prefix) > 0 {
		l.warnAt(in, n, path, "has no effect in a profile")
		return
	}
	v, err := k.convert(n, in.paths)
	if err != nil {
		l.failAt(in, n, path, err.Error())
		return
	}
	if in.ignore {
		return
	}
	l.warnUnsupported(in, k, n, path, v)
	l.keep(&setting{key: k, path: path, names: names, value: v, source: in.source.at(n.begin), rank: in.rank})
}

// warnUnsupported says that a value has no effect.
func (l *loader) warnUnsupported(in layer, k *key, n *node, path []string, v any) {
	if k.alias != nil {
		target, value := k.alias(v)
		k, _ = resolve(target)
		v = value
	}
	if k.warns(v) {
		l.warnings = append(l.warnings, Warning{Problem: in.problem(path, n.at, k.warning), Ineffective: true})
	}
}

// keep remembers a setting unless there is a stronger one.
func (l *loader) keep(s *setting) {
	s.direct = s.key.alias == nil
	if !s.direct {
		s.path, s.value = s.key.alias(s.value)
		s.key, s.names = resolve(s.path)
	}
	if s.key.kind == urlKind && s.value == "" && s.rank > rankDefault {
		return // an address that was emptied is one that was not set
	}
	name := formatKey(s.path)
	if old, ok := l.settings[name]; ok && old.beats(s) {
		return
	}
	l.settings[name] = s
}

// resolve finds a key that is known to exist, and what its stars stand for.
func resolve(path []string) (*key, []string) {
	k := schema().find(path)
	var names []string
	for i, part := range k.path {
		if part == "*" {
			names = append(names, path[i])
		}
	}
	return k, names
}

// meant guesses what an unknown key was to be: a neighbour that is spelt
// almost the same, or the same name in another table.
func (l *loader) meant(in layer, b *branch, path []string, name string) string {
	candidates := b.names
	if len(path) == 0 && len(in.prefix) == 0 {
		candidates = append([]string{"profiles"}, candidates...)
	}
	if near := humanize.Nearest(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %s?", formatKey(slices.Concat(in.prefix, path, []string{near})))
	}
	elsewhere := ""
	schema().each(func(k *key) {
		if elsewhere == "" && k.last() == name {
			elsewhere = k.name()
		}
	})
	if elsewhere == "" {
		return ""
	}
	if !strings.Contains(elsewhere, ".") {
		return fmt.Sprintf("; did you mean %s? it belongs above the first [table]", elsewhere)
	}
	return fmt.Sprintf("; did you mean %s?", elsewhere)
}

func (in layer) problem(path []string, at position, text string) Problem {
	return Problem{Source: in.source.at(at), Key: formatKey(slices.Concat(in.prefix, path)), Text: text}
}

func (l *loader) failAt(in layer, n *node, path []string, text string) {
	at := n.begin
	if at == (position{}) {
		at = n.at
	}
	l.fail(in.problem(path, at, text))
}

func (l *loader) warnAt(in layer, n *node, path []string, text string) {
	l.warnings = append(l.warnings, Warning{Problem: in.problem(path, n.at, text)})
}

func (l *loader) fail(p Problem) { l.errs = append(l.errs, &Error{p}) }

// failure is all that went wrong, as one error.
func (l *loader) failure() error {
	slices.SortStableFunc(l.errs, func(a, b *Error) int { return a.compare(b.Problem) })
	var all []error
	for _, e := range l.errs {
		all = append(all, e)
	}
	return errors.Join(all...)
}

// build makes the Config of what was kept.
func (l *loader) build() *Config {
	c := &Config{Home: l.home, File: l.file, settings: l.settings, providers: map[string]*Provider{}, catalogue: catalogue.Open(l.home)}
	for _, s := range l.settings {
		s.key.put(c, s.names, s.value)
	}
	for id, p := range c.providers {
		p.complete(c.settings[formatKey([]string{"model_providers", id, "env_key"})])
	}
	l.checkServers(c)
	l.readInstructions(c)
	return c
}

// sourceUnder is where the first key of a table was set.
func (l *loader) sourceUnder(path ...string) Source {
	var first Source
	for _, s := range l.settings {
		if len(s.path) > len(path) && slices.Equal(s.path[:len(path)], path) && (first == Source{} || s.source.Line < first.Line) {
			first = s.source
		}
	}
	return first
}

// readInstructions reads the file that replaces the built-in instructions.
func (l *loader) readInstructions(c *Config) {
	name, file := "model_instructions_file", c.modelInstructionsFile
	if file == "" {
		name, file = "experimental_instructions_file", c.instructionsFile
	}
	if file == "" {
		return
	}
	text, err := regular.ReadFile(file)
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = errors.New(file + " is empty")
	}
	if err != nil {
		l.fail(Problem{Source: l.settings[name].source, Key: name, Text: err.Error()})
		return
	}
	c.Instructions = strings.ToValidUTF8(strings.TrimSpace(string(text)), "\uFFFD")
}
