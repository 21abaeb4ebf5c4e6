package mcpcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

// loginTime is how long a person may take to log in.
const loginTime = 15 * time.Minute

type loginFlags struct {
	noBrowser      bool
	clientID       string
	secretVariable string
	port           int
	scopes         []string
}

func loginCommand(o Options) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an MCP server that is a service, in the browser",
		Long: "Log in to an MCP server that is a service (OAuth). The browser is opened where that is possible; the address is printed always. If the\n" +
			"browser is on another machine, paste the address that it ends at. The login is saved in the keyring of the system where there is one, else\n" +
			"in a file that only you can read, and renewed when it expires. Commands of the model never see it.",
		Example: "  fermata mcp login tickets\n  fermata mcp login tickets --client-id fermata-team --port 8976",
		Args:    between(1, 1),
	}
	c := o.command(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.noBrowser, "no-browser", false, "do not open a browser")
	fs.StringVar(&f.clientID, "client-id", "", "the `ID` by which the service knows fermata, if it does not let programs register themselves")
	fs.StringVar(&f.secretVariable, "client-secret-env-var", "", "the environment `VARIABLE` with the secret that belongs to it")
	fs.IntVar(&f.port, "port", 0, "the `PORT` of this machine that the browser is sent back to; any if it is not given")
	fs.StringArrayVar(&f.scopes, "scope", nil, "ask for this `SCOPE` as well; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, a []string) error { return c.login(cmd.Context(), a[0], f) }
	return cmd
}

// service returns a server that is used here.
func (c *command) service(name string) (app.Loaded, config.MCPServer, error) {
	l, err := c.read()
	if err != nil {
		return l, config.MCPServer{}, err
	}
	defs, err := chosen(l, []string{name})
	return l, defs[name], err
}

func (c *command) login(ctx context.Context, name string, f loginFlags) error {
	how := mcp.LoginOptions{Port: f.port, ClientID: f.clientID, Scopes: f.scopes}
	if f.port < 0 || f.port > 65535 {
		return usage("login: %d is not the number of a port", f.port)
	}
	if f.secretVariable != "" {
		if how.ClientSecret = os.Getenv(f.secretVariable); how.ClientSecret == "" {
			return usage("login: the environment variable %s is not set", f.secretVariable)
		}
	}
	if f.secretVariable != "" && f.clientID == "" {
		return usage("login: --client-secret-env-var needs --client-id")
	}
	l, def, err := c.service(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTime, fmt.Errorf("there was no login within %v", loginTime))
	defer cancel()
	how.Pasted = c.pasted()
	opened := func() {}
	how.Show = func(address string) { opened = c.show(address, how.Pasted != nil, f.noBrowser) }
	defer func() { opened() }()
	err = mcp.Login(ctx, name, def, mcp.Options{Getenv: l.Options.Env, Version: cli.Version(), Logins: l.Logins}, how)
	if errors.Is(err, mcp.ErrNoLoginNeeded) {
		_, err = fmt.Fprintf(c.Err, "%s needs no login.\n", name)
		return err
	}
	if err != nil {
		return fmt.Errorf("log in to the MCP server %s: %w", name, err)
	}
	_, err = fmt.Fprintf(c.Err, "You are logged in to %s.\n", name)
	return err
}

// show prints the address of a login, and opens it. done is called when the login is over.
func (c *command) show(address string, canPaste, noBrowser bool) (done func()) {
	fmt.Fprintf(c.Err, "Log in at this address:\n\n%s\n\n", address)
	if canPaste {
		fmt.Fprintln(c.Err, "If the browser is on another machine, paste here the address that it ends at.")
	}
	if noBrowser {
		return func() {}
	}
	done, err := cli.OpenBrowser(address)
	if err != nil {
		fmt.Fprintf(c.Err, "fermata: the browser cannot be opened: %v\n", err)
	}
	return done
}

// pasted delivers the lines that the person types, nil where that is impossible.
func (c *command) pasted() <-chan string {
	in, ok := c.In.(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		return nil
	}
	lines := make(chan string)
	go func() { // ends with the program: a read of a terminal cannot be cancelled
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

func logoutCommand(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "logout NAME", Short: "Delete the login to an MCP server", Example: "  fermata mcp logout tickets", Args: between(1, 1),
	}
	c := o.command(cmd)
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		l, def, err := c.service(a[0])
		if err != nil {
			return err
		}
		found, err := mcp.Logout(cmd.Context(), a[0], def, l.Logins)
		if err == nil && !found {
			err = fmt.Errorf("you are not logged in to the MCP server %s", a[0])
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Err, "The login to %s is deleted. The service may still take it until it expires.\n", a[0])
		return err
	}
	return cmd
}

// loginState says whether the person is logged in to a server; empty if there is no need.
func loginState(l app.Loaded, name string, def config.MCPServer) string {
	state, err := mcp.LoginState(name, def, l.Logins)
	if err != nil {
		return "not known: " + err.Error()
	}
	return state
}
