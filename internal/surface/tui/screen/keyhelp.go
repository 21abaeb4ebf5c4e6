package screen

// Keys is the help for keys.
const Keys = `
Enter                   send; while a turn runs: steer it with the next request
Tab, Alt-Enter          while a turn runs: queue the message until it has ended
Ctrl-S                  while a turn runs: interrupt it and send this instead
↑ when empty            edit the last pending message; else the history
Ctrl-R                  search the history
Ctrl-J, Shift-Enter     insert a new line
@                       complete a file name
!COMMAND                run a command; the model sees its output afterwards
Ctrl-G                  write in your editor ($VISUAL, $EDITOR)

Esc, Ctrl-C             interrupt the turn and everything it runs; messages
                        that were not delivered are returned to the composer
Esc twice               when idle, with nothing written: edit an earlier message
Ctrl-C twice            quit, when nothing runs; Ctrl-D too
y a n s at an approval  answer it if you do not type on: a sentence goes to the
                        composer; Enter answers at once, Esc takes it back
/ at an approval        answer later: /resume, /new, /diff; Esc goes back to it
Ctrl-O                  unfold or fold the last long item; Alt-O all
PgUp, PgDn, wheel       scroll; Esc or End goes back to the bottom
Mouse                   select text to copy it; tui.mouse = false leaves the
                        mouse to the terminal
Ctrl-V                  attach the image in the clipboard
Alt-Y                   copy the last answer; /copy N copies its Nth code block
?                       this page, while nothing is written
Shift-Tab               plan mode on or off: only reads until you accept a plan
Ctrl-L, Ctrl-Z          redraw; suspend
`
