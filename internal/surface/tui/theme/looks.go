package theme

var (
	bold      = mark{"\x1b[1m", "\x1b[22m"}
	italic    = mark{"\x1b[3m", "\x1b[23m"}
	underline = mark{"\x1b[4m", "\x1b[24m"}
	reverse   = mark{"\x1b[7m", "\x1b[27m"}
	strike    = mark{"\x1b[9m", "\x1b[29m"}
)

// A look is how a role appears. Colours are of the palette of 256, whose first
// sixteen are the user's own; those after them look the same everywhere.
type look struct {
	attributes  []mark
	dark, light string
}

var looks = map[Role]look{
	Dim:      {nil, "245", "243"},
	Bold:     {[]mark{bold}, "", ""},
	Accent:   {nil, "75", "26"},
	User:     {[]mark{bold}, "75", "26"},
	OK:       {nil, "78", "28"},
	Warn:     {nil, "179", "130"},
	Error:    {nil, "203", "160"},
	Added:    {nil, "78", "28"},
	Removed:  {nil, "203", "160"},
	Code:     {nil, "180", "94"},
	Heading:  {[]mark{bold}, "111", "25"},
	Link:     {[]mark{underline}, "75", "26"},
	Quote:    {[]mark{italic}, "248", "241"},
	Border:   {nil, "240", "249"},
	Selected: {[]mark{reverse}, "", ""},
	Keyword:  {nil, "176", "90"},
	String:   {nil, "150", "28"},
	Comment:  {[]mark{italic}, "244", "244"},
	Number:   {nil, "215", "130"},
	Italic:   {[]mark{italic}, "", ""},
	Strike:   {[]mark{strike}, "", ""},
}
