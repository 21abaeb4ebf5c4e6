package journal

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string that is valid UTF-8 and has no NUL
// byte and no line break.
func appendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
		}
		b = append(b, s[from:i]...)
		b = appendEscape(b, c)
		i++
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// appendEscape appends what stands for a byte that cannot stand for itself.
func appendEscape(b []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, '\\', 'n')
	case c == '\r':
		return append(b, '\\', 'r')
	case c == '\t':
		return append(b, '\\', 't')
	case c >= utf8.RuneSelf:
		return utf8.AppendRune(b, utf8.RuneError)
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
