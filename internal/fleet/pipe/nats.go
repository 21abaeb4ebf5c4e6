package pipe

import "github.com/nats-io/nats.go"

// OverNATS is a bus of a connection to NATS servers.
func OverNATS(nc *nats.Conn) Bus { return natsBus{nc} }

type natsBus struct{ nc *nats.Conn }

func (b natsBus) Publish(subject, reply string, data []byte) error {
	return b.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: data})
}

// noResponders is the status of a message that was not received.
const noResponders = "503"

func (b natsBus) Subscribe(subject string, f func(Message)) (func(), error) {
	sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) {
		f(Message{Reply: m.Reply, Data: m.Data, NoListener: len(m.Data) == 0 && m.Header.Get("Status") == noResponders})
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil // else the connection has ended
}

func (b natsBus) NewInbox() string { return b.nc.NewInbox() }

func (b natsBus) MaxPayload() int { return int(b.nc.MaxPayload()) }
