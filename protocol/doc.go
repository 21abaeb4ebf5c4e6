// Package protocol defines what clients and the engine exchange: the operations
// that a client can ask for, the events that report what happened, the items that
// a conversation is made of, and the JSON form of each. It has no
// behaviour, and every other package may import it.
//
// Start reading at [Event] and [Op]. A conversation is a list of numbered
// events; everything else (what a client is shown, what the model is sent next,
// what is found after a crash) is derived from that list.
package protocol
