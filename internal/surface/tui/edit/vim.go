package edit

import "strings"

// Vim is the state of vim's keys on a buffer. The zero value inserts.
type Vim struct {
	Normal  bool   // keys are commands
	pending string // the beginning of a command, such as d
	kept    string // what was deleted or yanked last
	lines   bool   // it is whole lines
}

// Escape goes to normal mode, or forgets the beginning of a command. It reports false if there
// was nothing to do.
func (v *Vim) Escape(b *Buffer) bool {
	switch {
	case v.pending != "":
		v.pending = ""
	case v.Normal:
		return false
	default:
		v.Normal = true
		if at := b.cur; at.Off > 0 {
			b.move(b.prevPos(at))
		}
	}
	return true
}

// Insert goes to insert mode.
func (v *Vim) Insert() { v.Normal, v.pending = false, "" }

// Key takes a character in normal mode. What is no command does nothing.
func (v *Vim) Key(b *Buffer, key string) {
	b.init()
	command := v.pending + key
	v.pending = ""
	switch op := command[:1]; {
	case strings.Contains("dcyg", op) && len(command) == 1:
		v.pending = command
	case command == "gg":
		b.move(Pos{})
	case op == "g":
	case command == op+op && strings.Contains("dcy", op):
		v.wholeLines(b, op)
	case strings.Contains("dcy", op) && len(command) > 1:
		v.operate(b, op, command[1:])
	default:
		v.simple(b, command)
	}
	if v.Normal {
		v.stay(b)
	}
}

// stay keeps the cursor on a character, not behind the last one.
func (v *Vim) stay(b *Buffer) {
	if at := b.cur; at.Off > 0 && at.Off == len(b.Line(at.Line)) {
		b.cur = b.prevPos(at)
	}
}

// motion is where a key leads. through says that an operator takes what is there, too.
func (v *Vim) motion(b *Buffer, key string) (to Pos, through, ok bool) {
	at := b.cur
	line := b.Line(at.Line)
	switch key {
	case "h":
		return Pos{at.Line, b.prevPos(at).Off * min(at.Off, 1)}, false, true
	case "l":
		if at.Off < len(line) {
			return b.nextPos(at), false, true
		}
		return at, false, true
	case "w":
		c := b.class(at)
		if c != blank {
			at = b.forth(at, func(x class) bool { return x == c })
		}
		return b.forth(at, isBlank), false, true
	case "b":
		at = b.back(at, isBlank)
		c := b.class(b.prevPos(at))
		return b.back(at, func(x class) bool { return x == c && c != blank }), false, true
	case "e":
		at = b.forth(b.nextPos(at), isBlank)
		c := b.class(at)
		return b.prevPos(b.forth(at, func(x class) bool { return x == c && c != blank })), true, true
	case "0":
		return Pos{at.Line, 0}, false, true
	case "^":
		return Pos{at.Line, len(line) - len(strings.TrimLeft(line, " \t"))}, false, true
	case "$":
		return Pos{at.Line, len(line)}, false, true
	case "G":
		return Pos{b.Lines() - 1, 0}, false, true
	}
	return at, false, false
}

// operate deletes, changes or yanks up to where a motion leads.
func (v *Vim) operate(b *Buffer, op, key string) {
	if op == "c" && key == "w" && b.class(b.cur) != blank {
		key = "e" // as vim does: the blanks after the word stay
	}
	to, through, ok := v.motion(b, key)
	if !ok {
		return
	}
	if through {
		to = b.nextPos(to)
	}
	from := b.cur
	if to.before(from) {
		from, to = to, from
	}
	if key == "w" && to.Line > from.Line { // the last word of a line ends with it
		to = Pos{from.Line, len(b.Line(from.Line))}
	}
	v.take(b, op, from, to)
}

func (v *Vim) take(b *Buffer, op string, from, to Pos) {
	if from != to {
		v.kept, v.lines = b.slice(from, to), false
	}
	if b.move(from); op != "y" {
		b.Replace(from, to, "")
	}
	if op == "c" {
		v.Insert()
	}
}

// wholeLines is dd, cc or yy.
func (v *Vim) wholeLines(b *Buffer, op string) {
	n := b.cur.Line
	text := b.Line(n)
	from, to := Pos{n, 0}, Pos{n, len(text)}
	switch {
	case op == "y":
	case op == "c":
		b.Replace(from, to, "")
		v.Insert()
	case n+1 < b.Lines():
		b.Replace(from, Pos{n + 1, 0}, "")
	case n > 0:
		b.Replace(Pos{n - 1, len(b.Line(n - 1))}, to, "")
		b.move(Pos{n - 1, 0})
	default:
		b.Replace(from, to, "")
	}
	v.kept, v.lines = text, true
}

// simple is a command of one key.
func (v *Vim) simple(b *Buffer, key string) {
	at := b.cur
	end := Pos{at.Line, len(b.Line(at.Line))}
	switch key {
	case "i":
		v.Insert()
	case "a":
		if at.Off < end.Off {
			b.move(b.nextPos(at))
		}
		v.Insert()
	case "I":
		to, _, _ := v.motion(b, "^")
		b.move(to)
		v.Insert()
	case "A":
		b.move(end)
		v.Insert()
	case "o":
		b.move(end)
		b.Insert("\n")
		v.Insert()
	case "O":
		b.move(Pos{at.Line, 0})
		b.Insert("\n")
		b.move(Pos{at.Line, 0})
		v.Insert()
	case "x":
		if at.Off < end.Off {
			v.take(b, "d", at, b.nextPos(at))
		}
	case "D":
		v.take(b, "d", at, end)
	case "C":
		v.take(b, "c", at, end)
	case "u":
		b.Undo()
	case "p", "P":
		v.put(b, key == "p")
	case "j":
		b.Down()
	case "k":
		b.Up()
	default:
		if to, _, ok := v.motion(b, key); ok {
			b.move(to)
		}
	}
}

// put writes what was deleted or yanked last.
func (v *Vim) put(b *Buffer, behind bool) {
	at := b.cur
	switch end := len(b.Line(at.Line)); {
	case v.kept == "":
	case v.lines && behind:
		b.move(Pos{at.Line, end})
		b.Insert("\n" + v.kept)
		b.move(Pos{at.Line + 1, 0})
	case v.lines:
		b.move(Pos{at.Line, 0})
		b.Insert(v.kept + "\n")
		b.move(Pos{at.Line, 0})
	default:
		if behind && at.Off < end {
			b.move(b.nextPos(at))
		}
		b.Replace(b.cur, b.cur, v.kept)
		if b.cur.Off > 0 {
			b.move(b.prevPos(b.cur))
		}
	}
}
