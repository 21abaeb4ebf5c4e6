package draw

import "testing"

func TestList(t *testing.T) {
	var l List
	l.Step(-1, 5)
	if l.At != 4 {
		t.Errorf("one up from the first is %d", l.At)
	}
	if from, to := l.Window(3, 5); from != 2 || to != 5 {
		t.Errorf("the window is %d to %d", from, to)
	}
	l.Move(-2, 5)
	if from, to := l.Window(3, 5); l.At != 2 || from != 2 || to != 5 {
		t.Errorf("at %d the window is %d to %d, but it need not move", l.At, from, to)
	}
	l.Move(-9, 5)
	if from, to := l.Window(3, 5); l.At != 0 || from != 0 || to != 3 {
		t.Errorf("at %d the window is %d to %d", l.At, from, to)
	}
	l.Move(9, 0)
	if from, to := l.Window(3, 0); l.At != 0 || from != 0 || to != 0 {
		t.Errorf("without rows it is at %d, %d to %d", l.At, from, to)
	}
	l.Step(1, 0)
	l.Step(1, 5)
	l.Step(4, 5)
	if l.At != 0 {
		t.Errorf("round it goes to %d", l.At)
	}
}
