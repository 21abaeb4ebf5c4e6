package transcript

import "testing"

func TestRequestLine(t *testing.T) {
	for _, tt := range []struct{ tool, arguments, want string }{
		{"exec_command", `{"cmd":"rm x","yield_time_ms":1}`, "rm x"},
		{"shell", `{"command":["bash","-lc","rm x | cat"]}`, "rm x | cat"},
		{"shell", `{"command":["rm","a b"]}`, "rm 'a b'"},
		{"bash", `{"command":"rm x"}`, "rm x"},
		{"write", `{"path":"a","content":"b"}`, "write a"},
		{"edit", `{"file_path":"a","old_text":"b"}`, "edit a"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n"}`, "apply_patch add a, delete b"},
		{"apply_patch", "*** Begin Patch\n*** Update File: a\n", "apply_patch update a"},
		{"apply_patch", `{"input":1}`, ""},
		{"exec_command", `{"cmd":`, ""},
		{"read", `{"path":"a"}`, ""},
		{"docs__write", `{"path":"a"}`, ""},
	} {
		if got := RequestLine(tt.tool, tt.arguments); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.arguments, got, tt.want)
		}
	}
}
