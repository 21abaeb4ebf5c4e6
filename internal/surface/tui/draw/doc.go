// Package draw makes lines of text with colours: of the items of a conversation,
// of Markdown, and of long texts that are scrolled.
//
// [Item] draws an item of a transcript as it is now. [View] shows the items of a
// conversation through a window that scrolls. [Markdown] draws what models write,
// [Page] shows a text on the whole screen, and [Selection] is what is marked with
// the mouse. Text of models, commands and files is sanitized first: the only
// escape codes in a line are those of package theme.
package draw
