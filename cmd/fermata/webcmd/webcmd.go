// Package webcmd is what the commands serve and web do to serve the page: flags, links and printing.
package webcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"rsc.io/qr"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/surface/web"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/notify"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
	p "github.com/fermata-agent/fermata/protocol"
)

// Flags are those of the page.
type Flags struct {
	Address  string
	names    []string
	cert     string
	key      secrets.File
	plain    bool
	readOnly bool
}

// Default is where the page is served unless an address is given.
const Default = "127.0.0.1:0"

// Register adds the flags.
func (f *Flags) Register(fs *pflag.FlagSet) {
	fs.Var((*address)(&f.Address), "http", "serve the page at `HOST:PORT`, without one at a free port of this machine; beyond this machine with TLS")
	fs.Lookup("http").NoOptDefVal = withoutAddress
	fs.StringArrayVar(&f.names, "http-name", nil, "another `NAME` of this machine by which the page is reached; may be repeated")
	fs.StringVar(&f.cert, "tls-cert", "", "the certificate, a PEM `FILE`; without one, one is made where it is needed")
	fs.Var(&f.key, "tls-key", "the key of the certificate, a PEM `FILE`")
	fs.BoolVar(&f.plain, "insecure-http", false, "serve without TLS beyond this machine, although others can then read and do everything")
	fs.BoolVar(&f.readOnly, "read-only", false, "make the link one for reading only")
}

// An address is the value of --http. It may be left out: pflag then sets withoutAddress, as for flags that it counts, of
// which its help prints no default.
type address string

const withoutAddress = "+1"

func (a *address) Set(v string) error {
	if v == withoutAddress {
		v = Default
	}
	if _, _, err := net.SplitHostPort(v); err != nil {
		return fmt.Errorf("must be HOST:PORT, such as 127.0.0.1:7777, not %q", v)
	}
	*a = address(v)
	return nil
}

func (a *address) String() string { return string(*a) }

// Type is that of flags that are counted.
func (a *address) Type() string { return "count" }

// TakeAddress takes an address that is written after --http with a space: flags whose value may be left out take only
// one that is joined by "=".
func (f *Flags) TakeAddress(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case f.Address == "":
		return fmt.Errorf("%q: an address needs --http", args[0])
	case f.Address != Default:
		return fmt.Errorf("two addresses are given: %s and %s", f.Address, args[0])
	}
	f.Address = args[0]
	return nil
}

// Given reports a flag that only makes sense with an address, if there is one.
func (f *Flags) Given(fs *pflag.FlagSet) (name string, ok bool) {
	for _, n := range []string{"http-name", "tls-cert", "tls-key", "insecure-http", "read-only"} {
		if fs.Changed(n) {
			return n, true
		}
	}
	return "", false
}

func (f *Flags) rights() access.Rights {
	if f.readOnly {
		return access.ReadOnly
	}
	return access.Everything
}

// Options are what the page is served with.
type Options struct {
	App      *app.App
	Version  string
	Out      io.Writer // for the link, and nothing else
	Err      io.Writer // for people
	Terminal bool      // Err is one: it gets a QR code, too
	Open     bool      // open the browser
}

// Serve serves the page until ctx ends.
func Serve(ctx context.Context, f Flags, o Options) error {
	_, port, err := net.SplitHostPort(f.Address)
	if _, unknown := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil || unknown != nil {
		return cli.Usagef("the address must be HOST:PORT, such as 127.0.0.1:7777, not %q", f.Address)
	}
	store := access.Open(o.App.Config.Home)
	key, err := store.Key()
	if err != nil {
		return err
	}
	at, err := listen(ctx, store, key, f, o)
	if err != nil {
		return err
	}
	defer at.Close()
	push, err := notify.NewPush(store, o.App.Config.PushServices)
	if err != nil {
		return err
	}
	var hook *notify.Webhook
	if h := o.App.Config.Webhook; h.URL != "" || h.Secret.IsSet() {
		if hook, err = notify.NewWebhook(h.URL, h.Secret.Reveal()); err != nil {
			return err
		}
	}
	server := web.New(ctx, web.Options{
		Engine: o.App.Engine, Access: store, Key: key, Origins: at.Origins, Version: o.Version, Dir: o.App.Cwd, Settings: settings(o.App), Cost: o.App.Models.Cost,
		Push: push, Hook: hook, Panicked: o.App.Panicked(), Failed: func(err error) { fmt.Fprintf(o.Err, "fermata: %v\n", err) },
		Undo: func(ctx context.Context, id p.ConversationID, turn p.TurnID) (*app.Undo, error) {
			if err := o.App.Limits().AllowUndo(); err != nil {
				return nil, err
			}
			return app.PlanUndo(ctx, o.App.Engine, id, turn)
		},
	})
	notified := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with ctx
		defer close(notified)
		server.Notify(ctx)
	}()
	defer func() { cancel(); <-notified }()
	opened, err := Link(store, f, o)
	if err != nil {
		return err
	}
	defer opened()
	if at.Fingerprint != "" {
		fmt.Fprintf(o.Err, "The browser will warn of the certificate, which fermata has made itself. Its SHA-256 is\n  %s\n", at.Fingerprint)
	}
	if strings.HasPrefix(at.Origins[0], "http:") && f.plain {
		fmt.Fprintln(o.Err, "fermata: warning: served without TLS: whoever is on the way can read and do everything; browsers are refused, only programs can use it")
	}
	return at.Serve(ctx, server)
}

// settings makes those of a new conversation. Its directory must be there: a turn in one that is not would find nothing and cost
// tokens.
func settings(a *app.App) func(app.SettingsRequest) (p.Settings, []string, error) {
	return func(q app.SettingsRequest) (p.Settings, []string, error) {
		s, remarks, err := a.Settings(q)
		if err != nil {
			return s, remarks, err
		}
		if info, err := os.Stat(s.Cwd); err != nil || !info.IsDir() {
			return p.Settings{}, nil, fmt.Errorf("%s is not a directory on this machine", s.Cwd)
		}
		return s, remarks, nil
	}
}

// listen listens where pages expect the server, if that is still free. Where another program listens there by now, the
// sessions of browsers end: a page that it has sent could use them.
func listen(ctx context.Context, store *access.Store, key proof.Key, f Flags, o Options) (*web.Endpoint, error) {
	st, err := store.Read()
	if err != nil {
		return nil, err
	}
	at, err := web.Listen(ctx, web.Address{
		Listen: f.Address, LastPort: st.Port, Names: f.names, Cert: f.cert, Key: f.key, Plain: f.plain, Home: o.App.Config.Home,
	})
	if st.Origin != "" && (err != nil || !slices.Contains(at.Origins, st.Origin)) && web.Foreign(ctx, st.Origin, key) {
		n, ended := store.EndBrowsers()
		if ended == nil && n > 0 {
			fmt.Fprintf(o.Err, "fermata: another program listens at %s, where the page was served: browsers need a new link\n", st.Origin)
		}
		err = errors.Join(err, ended)
	}
	if err == nil {
		err = store.Change(func(st *access.State) error {
			st.Port, st.Origin = at.Port(), at.Origins[0]
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("serve the page: %w", err)
	}
	return at, nil
}

// ErrNotServed says that there is no page to make a link to.
var ErrNotServed = errors.New("the page has not been served yet")

// Link prints a new link to the page, which works once and soon. opened is called when the browser has had time to open it.
func Link(store *access.Store, f Flags, o Options) (opened func(), err error) {
	opened = func() {}
	st, err := store.Read()
	if err != nil {
		return opened, err
	}
	if st.Origin == "" {
		return opened, ErrNotServed
	}
	code, err := store.NewLink(f.rights())
	if err != nil {
		return opened, err
	}
	link := st.Origin + "/?link=" + code
	fmt.Fprintln(o.Out, link)
	kind := ""
	if f.readOnly {
		kind = ", for reading only"
	}
	fmt.Fprintf(o.Err, "Open the link within %d minutes; it works once%s. fermata web --link prints another one.\n", int(access.LinkTTL.Minutes()), kind)
	if o.Terminal {
		printQR(o.Err, link)
	}
	if o.Open {
		if opened, err = cli.OpenBrowser(link); err != nil { // the link has been printed
			fmt.Fprintf(o.Err, "fermata: the browser was not opened: %v\n", err)
		}
	}
	return opened, nil
}

// printQR prints a code that a phone reads: two rows of it in one line, light on dark and the other way round.
func printQR(w io.Writer, text string) {
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return // the link is there
	}
	const quiet = 2 // rows around it
	for y := -quiet; y < c.Size+quiet; y += 2 {
		var b strings.Builder
		for x := -quiet; x < c.Size+quiet; x++ {
			b.WriteString([]string{"█", "▄", "▀", " "}[bit(c.Black(x, y))*2+bit(c.Black(x, y+1))])
		}
		fmt.Fprintln(w, b.String())
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Manage is what can be done about links while a page is served.
type Manage struct {
	link   bool
	list   bool
	revoke []string
}

// Register adds the flags.
func (m *Manage) Register(fs *pflag.FlagSet) {
	fs.BoolVar(&m.link, "link", false, "print another link to the page that is served, and end")
	fs.BoolVar(&m.list, "list", false, "list the links and who has used one, and end")
	fs.StringArrayVar(&m.revoke, "revoke", nil, "revoke a link or a session by its `ID`, or all, and end; may be repeated")
}

// Asked reports whether one of the flags is given.
func (m *Manage) Asked() bool { return m.link || m.list || len(m.revoke) > 0 }

// Excludes reports a flag that is given and means nothing beside those of m, if there is one.
func (m *Manage) Excludes(fs *pflag.FlagSet) (name string, ok bool) {
	fs.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "link", "list", "revoke":
		case "read-only":
			if !m.link {
				name, ok = f.Name, true
			}
		default:
			name, ok = f.Name, true
		}
	})
	return name, ok
}

// Do does what the flags say: revoke first, list last.
func (m *Manage) Do(home string, f Flags, o Options) error {
	store := access.Open(home)
	if err := revoke(store, m.revoke, o.Err); err != nil {
		return err
	}
	if m.link {
		if _, err := Link(store, f, o); err != nil {
			return err
		}
	}
	if m.list {
		return list(store, o)
	}
	return nil
}

// list prints who has used a link, and which links are open.
func list(store *access.Store, o Options) error {
	st, err := store.Read()
	if err != nil {
		return err
	}
	if len(st.Sessions)+len(st.Links) == 0 {
		_, err := fmt.Fprintln(o.Err, "there are no links and no sessions")
		return err
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	for _, s := range st.Sessions {
		fmt.Fprintf(w, "%s\tsession%s\tused %s\t%s\n", s.ID, readOnly(s.ReadOnly), s.Used.Local().Format(time.DateTime), safetext.ShowLine(s.Name))
	}
	for _, l := range st.Links {
		fmt.Fprintf(w, "%s\tlink%s\tuntil %s\n", l.ID, readOnly(l.ReadOnly), l.Expires.Local().Format(time.DateTime))
	}
	return w.Flush()
}

func readOnly(b bool) string {
	if b {
		return ", read-only"
	}
	return ""
}

// revoke ends sessions and links by their ids; "all" is all of them.
func revoke(store *access.Store, ids []string, out io.Writer) error {
	for _, id := range ids {
		n, err := store.Revoke(id)
		if err != nil {
			return err
		}
		if n == 0 && id != "all" {
			return fmt.Errorf("there is no session or link %q", id)
		}
		fmt.Fprintf(out, "revoked %d\n", n)
	}
	return nil
}
