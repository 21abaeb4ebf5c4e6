package tomledit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// setValue puts a value that is no table at the path.
func setValue(text string, path []string, value string) (string, error) {
	list := scan(text)
	for _, st := range list {
		switch {
		case st.inArray:
			if hasPrefix(path, st.path) {
				return "", ErrUnsupported
			}
		case st.header && hasPrefix(st.path, path): // a table gives way
			text, err := removePath(text, path)
			if err != nil {
				return "", err
			}
			return setValue(text, path, value)
		case st.header:
		case slices.Equal(st.path, path):
			return splice(text, st.value, value), nil
		case hasPrefix(path, st.path):
			return setInline(text, st.value, path[len(st.path):], value)
		}
	}
	return insertKey(text, list, path, value), nil
}

// setInline puts a value into an inline table.
func setInline(text string, table span, path []string, value string) (string, error) {
	if text[table.from] != '{' {
		return "", ErrUnsupported
	}
	list := entries(text, table)
	for _, e := range list {
		switch {
		case slices.Equal(e.path, path):
			return splice(text, e.value, value), nil
		case hasPrefix(path, e.path):
			return setInline(text, e.value, path[len(e.path):], value)
		}
	}
	line := formatKey(path) + " = " + value
	if len(list) == 0 {
		return splice(text, table, "{ "+line+" }"), nil
	}
	end := list[len(list)-1].whole.to
	return splice(text, span{end, end}, ", "+line), nil
}

// insertKey adds a key: where its neighbours are, else at the end of its table,
// else in a table of its own at the end of the text.
func insertKey(text string, list []statement, path []string, value string) string {
	parent := path[:len(path)-1]
	at, under := -1, []string(nil)
	for _, st := range list {
		switch {
		case st.inArray:
		case st.header && slices.Equal(st.path, parent), !st.header && slices.Equal(st.table, parent):
			at, under = st.end, parent // the last of its table
		case !st.header && at < 0 && len(st.table) < len(parent) && hasPrefix(parent, st.table) && hasPrefix(st.path, parent):
			at, under = st.end, st.table // a neighbour with a dotted key
		case !st.header && under != nil && slices.Equal(st.table, under) && hasPrefix(st.path, parent):
			at = st.end
		}
	}
	if at < 0 && len(parent) == 0 {
		return insertTop(text, list, path, value)
	}
	if at < 0 {
		return appendLines(text, "["+formatKey(parent)+"]", formatKey(path[len(parent):])+" = "+value)
	}
	return insertLine(text, at, formatKey(path[len(under):])+" = "+value)
}

// insertTop adds a key that belongs above all tables, before the comment of the
// first of them.
func insertTop(text string, list []statement, path []string, value string) string {
	line := formatKey(path) + " = " + value
	if len(list) == 0 {
		return appendLines(text, line)
	}
	at, nl := leadStart(text, list[0].start), newline(text)
	return text[:at] + line + nl + nl + text[at:]
}

// insertLine adds a line at an offset that is the end of a line or of the text.
func insertLine(text string, at int, line string) string {
	nl := newline(text)
	if at > 0 && text[at-1] != '\n' {
		return text[:at] + nl + line + nl + text[at:]
	}
	return text[:at] + line + nl + text[at:]
}

// appendLines adds lines at the end, set off by a blank line.
func appendLines(text string, lines ...string) string {
	nl := newline(text)
	if text != "" && text != bom {
		if !strings.HasSuffix(text, "\n") {
			text += nl
		}
		if !strings.HasSuffix(text, nl+nl) {
			text += nl
		}
	}
	return text + strings.Join(lines, nl) + nl
}

// appendTable adds a table, its values first and then the tables in it.
func appendTable(text string, path []string, table map[string]any) (string, error) {
	list := scan(text)
	for _, st := range list {
		switch {
		case st.inArray && (hasPrefix(path, st.path) || hasPrefix(st.path, path)):
			return "", ErrUnsupported
		case !st.header && !st.inArray && hasPrefix(path, st.path) && len(st.path) <= len(path):
			if slices.Equal(st.path, path) { // an empty inline table
				return splice(text, st.value, formatValue(table)), nil
			}
			return setInline(text, st.value, path[len(st.path):], formatValue(table))
		case st.header && slices.Equal(st.path, path): // an empty table
			return fillTable(text, st, path, table)
		}
	}
	lines := tableLines(path, table, true)
	return appendLines(text, lines...), nil
}

// fillTable puts values below a header that there is.
func fillTable(text string, st statement, path []string, table map[string]any) (string, error) {
	lines := tableLines(path, table, false)
	for i := len(lines) - 1; i >= 0; i-- {
		text = insertLine(text, st.end, lines[i])
	}
	return text, nil
}

func tableLines(path []string, table map[string]any, header bool) []string {
	var lines, inner []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if sub, ok := table[name].(map[string]any); ok {
			inner = append(inner, "")
			inner = append(inner, tableLines(below(path, name), sub, true)...)
			continue
		}
		lines = append(lines, formatPart(name)+" = "+formatValue(table[name]))
	}
	if header {
		lines = slices.Insert(lines, 0, "["+formatKey(path)+"]")
	}
	return append(lines, inner...)
}

// removePath takes out the value or the table at a path.
func removePath(text string, path []string) (string, error) {
	list := scan(text)
	var tables span // that are to go and follow each other: taken out at once, so that offsets stay true
	flush := func() {
		if tables != (span{}) {
			text, tables = cut(text, tables.from, tables.to), span{}
		}
	}
	for i := len(list) - 1; i >= 0; i-- { // from the end, for the same reason
		st := list[i]
		switch {
		case st.inArray && hasPrefix(path, st.path) && !slices.Equal(path, st.path):
			return "", ErrUnsupported
		case st.header && hasPrefix(st.path, path):
			if tables == (span{}) {
				tables.to = sectionEnd(text, list, i)
			}
			tables.from = leadStart(text, st.start)
		case st.header:
			flush()
		case hasPrefix(st.table, path): // goes with its header
		case hasPrefix(st.path, path):
			flush()
			text = cut(text, st.start, st.end)
		case !st.inArray && hasPrefix(path, st.path):
			flush()
			var err error
			if text, err = removeInline(text, st.value, path[len(st.path):]); err != nil {
				return "", err
			}
		}
	}
	flush()
	return text, nil
}

// sectionEnd is where the table of a header ends: before the comment of the next
// header.
func sectionEnd(text string, list []statement, i int) int {
	for _, st := range list[i+1:] {
		if st.header {
			return leadStart(text, st.start)
		}
	}
	return len(text)
}

// leadStart is where the comment right above a line begins.
func leadStart(text string, start int) int {
	for start > 0 {
		line := text[strings.LastIndexByte(text[:start-1], '\n')+1 : start]
		if !strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(line, bom), " \t"), "#") {
			break
		}
		start -= len(line)
	}
	if start == 0 && strings.HasPrefix(text, bom) {
		return len(bom)
	}
	return start
}

func removeInline(text string, table span, path []string) (string, error) {
	if text[table.from] != '{' {
		return "", ErrUnsupported
	}
	list := entries(text, table)
	for i := len(list) - 1; i >= 0; i-- {
		e := list[i]
		switch {
		case hasPrefix(e.path, path):
			from, to := e.whole.from, e.whole.to
			if i+1 < len(list) {
				to = list[i+1].whole.from
			} else if i > 0 {
				from = list[i-1].whole.to
			}
			text = text[:from] + text[to:]
			return removeInlineRest(text, table, path, e)
		case hasPrefix(path, e.path):
			return removeInline(text, e.value, path[len(e.path):])
		}
	}
	return text, nil
}

// removeInlineRest goes on if a table was written as several dotted keys.
func removeInlineRest(text string, table span, path []string, gone entry) (string, error) {
	if slices.Equal(gone.path, path) {
		return text, nil
	}
	s := scanner{text: text, at: table.from}
	s.skipValue()
	return removeInline(text, span{table.from, s.at}, path)
}

// cut takes lines out, and one of two blank lines that would meet.
func cut(text string, from, to int) string {
	head, tail := text[:from], text[to:]
	nl := newline(text)
	switch {
	case strings.TrimSpace(tail) == "":
		if trimmed := strings.TrimRight(head, " \t\r\n"); trimmed != "" && strings.TrimSpace(head) != "" {
			return trimmed + nl
		}
	case head == "" || strings.HasSuffix(head, nl+nl):
		for strings.HasPrefix(tail, nl) {
			tail = tail[len(nl):]
		}
	}
	return head + tail
}

func splice(text string, at span, with string) string { return text[:at.from] + with + text[at.to:] }

// newline is how the lines of a text end.
func newline(text string) string {
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func formatKey(path []string) string {
	parts := make([]string, len(path))
	for i, name := range path {
		parts[i] = formatPart(name)
	}
	return strings.Join(parts, ".")
}

func formatPart(name string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !bare(r) }) < 0 {
		return name
	}
	return Quote(name)
}

// formatValue writes a value on one line. What is none becomes a text that
// does not decode.
func formatValue(value any) string {
	switch v := value.(type) {
	case string:
		return Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".eIN") {
			text += ".0"
		}
		return text
	case []string:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = Quote(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = formatValue(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, formatPart(name)+" = "+formatValue(v[name]))
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return "?"
}

// Quote writes s as a basic string. Bad UTF-8 becomes the replacement character.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !strconv.IsPrint(r):
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}
