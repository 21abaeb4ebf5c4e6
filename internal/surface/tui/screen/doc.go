// Package screen is what is on the screen beside the conversation and the box to
// write in: the status line and the title of the window, the welcome of an empty
// conversation, the screen of the first run, and the words in which numbers, times
// and settings are shown.
package screen
