package edit

import tea "charm.land/bubbletea/v2"

// keys are the keys of an editor, by their keystroke.
var keys = map[string]func(*Buffer){
	"left":   func(b *Buffer) { b.move(b.prevPos(b.cur)) },
	"ctrl+b": func(b *Buffer) { b.move(b.prevPos(b.cur)) },
	"right":  func(b *Buffer) { b.move(b.nextPos(b.cur)) },
	"ctrl+f": func(b *Buffer) { b.move(b.nextPos(b.cur)) },

	"alt+b":      func(b *Buffer) { b.move(b.wordLeft()) },
	"alt+left":   func(b *Buffer) { b.move(b.wordLeft()) },
	"ctrl+left":  func(b *Buffer) { b.move(b.wordLeft()) },
	"alt+f":      func(b *Buffer) { b.move(b.wordRight()) },
	"alt+right":  func(b *Buffer) { b.move(b.wordRight()) },
	"ctrl+right": func(b *Buffer) { b.move(b.wordRight()) },

	"home":        func(b *Buffer) { b.move(Pos{b.cur.Line, 0}) },
	"ctrl+a":      func(b *Buffer) { b.move(Pos{b.cur.Line, 0}) },
	"end":         func(b *Buffer) { b.move(Pos{b.cur.Line, len(b.Line(b.cur.Line))}) },
	"ctrl+e":      func(b *Buffer) { b.move(Pos{b.cur.Line, len(b.Line(b.cur.Line))}) },
	"ctrl+home":   func(b *Buffer) { b.move(Pos{}) },
	"alt+<":       func(b *Buffer) { b.move(Pos{}) },
	"ctrl+end":    func(b *Buffer) { b.move(b.end()) },
	"alt+>":       func(b *Buffer) { b.move(b.end()) },
	"alt+shift+,": func(b *Buffer) { b.move(Pos{}) },
	"alt+shift+.": func(b *Buffer) { b.move(b.end()) },

	"backspace":       func(b *Buffer) { b.erase(b.prevPos(b.cur)) },
	"shift+backspace": func(b *Buffer) { b.erase(b.prevPos(b.cur)) },
	"ctrl+h":          func(b *Buffer) { b.erase(b.prevPos(b.cur)) },
	"delete":          func(b *Buffer) { b.erase(b.nextPos(b.cur)) },
	"ctrl+d":          func(b *Buffer) { b.erase(b.nextPos(b.cur)) },
	"ctrl+w":          func(b *Buffer) { b.cut(b.back(b.back(b.cur, isBlank), notBlank)) },
	"alt+backspace":   func(b *Buffer) { b.cut(b.wordLeft()) },
	"ctrl+backspace":  func(b *Buffer) { b.cut(b.wordLeft()) },
	"alt+d":           func(b *Buffer) { b.cut(b.wordRight()) },
	"alt+delete":      func(b *Buffer) { b.cut(b.wordRight()) },
	"ctrl+delete":     func(b *Buffer) { b.cut(b.wordRight()) },
	"ctrl+u":          func(b *Buffer) { b.cut(Pos{b.cur.Line, 0}) },
	"ctrl+k":          (*Buffer).killLine,
	"ctrl+y":          func(b *Buffer) { b.Replace(b.cur, b.cur, b.kill) },
	"ctrl+t":          (*Buffer).transpose,

	"ctrl+_":       func(b *Buffer) { b.Undo() },
	"ctrl+/":       func(b *Buffer) { b.Undo() },
	"ctrl+shift+-": func(b *Buffer) { b.Undo() },
	"alt+z":        func(b *Buffer) { b.Undo() },
	"alt+shift+z":  func(b *Buffer) { b.Redo() },
}

// Key does what a key stands for: a motion, a deletion, or its character. It
// reports whether the key means anything here; Enter, Tab, Up and Down do not.
func (b *Buffer) Key(k tea.KeyPressMsg) bool {
	b.init()
	if do, ok := keys[k.Keystroke()]; ok {
		do(b)
		return true
	}
	// AltGr and dead keys give text together with a modifier.
	if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModMeta|tea.ModSuper|tea.ModHyper) != 0 {
		return false
	}
	b.Type(k.Text)
	return true
}
