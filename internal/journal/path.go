package journal

// validID reports whether an id can be part of a file's name.
func validID(id string) bool {
	if id == "" || len(id) > 100 {
		return false
	}
	for _, c := range id {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
