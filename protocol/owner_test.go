package protocol

import "testing"

func TestLockedErrorSaysWho(t *testing.T) {
	here := Self("").Host
	for _, test := range []struct {
		owner Owner
		want  string
	}{
		{Owner{}, "another process has this conversation open"},
		{Owner{PID: 7}, "process 7 has this conversation open"},
		{Owner{PID: 7, Host: here, Address: "unix:/x"}, "process 7 has this conversation open"},
		{Owner{PID: 7, Host: here + "2"}, "process 7 on " + here + "2 has this conversation open"},
		{Owner{Host: here + "2"}, "another process on " + here + "2 has this conversation open"},
	} {
		if got := (&LockedError{test.owner}).Error(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.owner, got, test.want)
		}
	}
}
