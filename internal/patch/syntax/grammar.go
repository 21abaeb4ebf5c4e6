package syntax

// Grammar is the format of a patch in Lark, for models whose output can be held
// to a grammar. It is stricter than Parse, which also takes what other models
// make of the format.
const Grammar = `start: begin file+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?

file: add | delete | update
add: "*** Add File: " path LF added+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF move? (first chunk* | chunk+)
move: "*** Move to: " path LF

first: line+ eof?
chunk: place+ line+ eof?
place: ("@@" | "@@ " /(.+)/) LF
added: "+" /(.*)/ LF
line: ("+" | "-" | " ") /(.*)/ LF
eof: "*** End of File" LF
path: /(.+)/

%import common.LF
`
