package setupcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/keys"
	"github.com/fermata-agent/fermata/internal/app/stdin"
	"github.com/fermata-agent/fermata/internal/config"
)

func loginCommand(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "login [PROVIDER]",
		Short: "Save the key of a model service",
		Long: "Save the key of a model service (openai unless PROVIDER says otherwise): in the keyring of the system where there is one, else in a\n" +
			"file that only you can read. The key is read from the terminal, without showing it, or from stdin. Commands of the model never see it.\n" +
			"A key in an environment variable takes precedence.",
		Example: "  fermata login\n  fermata login anthropic\n  pass show openai | fermata login openai",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			l, err := o.Load("")
			if err != nil {
				return err
			}
			provider, names, err := keyVariables(l, a)
			if err != nil {
				return err
			}
			key, err := readKey(o, provider)
			if err != nil {
				return err
			}
			return saveKey(o, l, provider, names[len(names)-1], key)
		},
	}
}

func logoutCommand(o Options) *cobra.Command {
	return &cobra.Command{
		Use:     "logout [PROVIDER]",
		Short:   "Delete a saved key",
		Long:    "Delete the saved key of a model service (openai unless PROVIDER says otherwise).",
		Example: "  fermata logout\n  fermata logout anthropic",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			l, err := o.Load("")
			if err != nil {
				return err
			}
			provider, names, err := keyVariables(l, a)
			if err != nil {
				return err
			}
			deleted := false
			for _, name := range names {
				found, err := l.Keys.Delete(name)
				if err != nil {
					return err
				}
				deleted = deleted || found
			}
			if !deleted {
				return &app.Error{Err: fmt.Errorf("no key of %s is saved", provider), Hint: savedKeys(l.Keys)}
			}
			_, err = fmt.Fprintf(o.Err, "the key of %s is deleted\n", provider)
			return err
		},
	}
}

// savedKeys says which keys there are.
func savedKeys(k *keys.Store) string {
	if names := k.Names(); len(names) > 0 {
		return "saved are: " + strings.Join(names, ", ")
	}
	return ""
}

// keyVariables returns the provider that is meant, and the variables that its key may be in.
func keyVariables(l app.Loaded, a []string) (string, []string, error) {
	provider := "openai"
	if len(a) > 0 {
		provider = a[0]
	} else if l.Config.Provider != "" {
		provider = l.Config.Provider
	}
	choice, err := l.Models().Choose(provider)
	var missing *config.MissingKeyError
	switch {
	case errors.As(err, &missing):
		return provider, missing.Variables, nil
	case err != nil && choice.Provider.ID == "":
		var wrong *config.Error
		if errors.As(err, &wrong) { // without the name of a setting, which the user did not type
			return "", nil, cli.Usagef("%s", wrong.Text)
		}
		return "", nil, err
	case len(choice.Provider.EnvKeys) == 0:
		return "", nil, &app.Error{Err: fmt.Errorf("%s needs no key", provider)}
	}
	return provider, choice.Provider.EnvKeys, nil
}

var errNoKey = errors.New("no key was given")

// readKey reads a key from the terminal or from stdin.
func readKey(o Options, provider string) (string, error) {
	in, ok := o.In.(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		key, err := stdin.Read(o.In, o.reportWaiting)
		if err == nil && key == "" {
			err = &app.Error{Err: errNoKey, Hint: "write it to stdin, or run this on a terminal"}
		}
		return key, err
	}
	fmt.Fprintf(o.Err, "Key for %s (it is not shown): ", provider)
	text, err := readHidden(in.Fd())
	fmt.Fprintln(o.Err)
	if err != nil {
		return "", err
	}
	if key := strings.TrimSpace(text); key != "" {
		return key, nil
	}
	return "", &app.Error{Err: errNoKey}
}

// readHidden reads a line that the terminal does not show. A signal ends it, with the terminal as it was.
func readHidden(fd uintptr) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(stop)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // a read cannot be stopped: it ends with the process
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case sig := <-stop:
		_ = term.Restore(fd, before) // there is nothing else to try
		return "", &cli.ExitError{Code: cli.SignalCode(sig)}
	case l := <-read:
		if l.err != nil {
			return "", fmt.Errorf("read the key: %w", l.err)
		}
		return string(l.text), nil
	}
}

// saveKey saves a key and says where, and what it is used for.
func saveKey(o Options, l app.Loaded, provider, variable, key string) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return &app.Error{Err: errors.New("that is no key: there is white space in it")}
	}
	place, err := l.Keys.Save(variable, key)
	if err != nil {
		return err
	}
	where := string(place)
	if place == keys.File {
		where = app.Tilde(l.Config.Home) + "/keys, which only you can read"
	}
	fmt.Fprintf(o.Err, "the key of %s is saved in %s\n", provider, where)
	if os.Getenv(variable) != "" {
		fmt.Fprintf(o.Err, "fermata: warning: %s is set, and takes precedence\n", variable)
	}
	if found := []string{"openai", "anthropic", l.Config.Provider}; !slices.Contains(found, provider) {
		fmt.Fprintf(o.Err, "to use it: fermata -m %s/MODEL, or model_provider = %q in %s\n", provider, provider, app.Tilde(l.Config.Home)+"/"+config.FileName)
	}
	return nil
}

// KeepKey uses a key that was typed on the first screen, and offers to save it.
func KeepKey(o Options, l app.Loaded, provider, variable, key string) error {
	fmt.Fprint(o.Err, "Save the key for next time? [Y/n] ")
	if answer := strings.ToLower(strings.TrimSpace(readLine(o.In))); answer == "" || answer == "y" || answer == "yes" {
		return saveKey(o, l, provider, variable, key)
	}
	return os.Setenv(variable, key) // of this process only; commands do not get it
}

// readLine reads one line, and nothing of what follows it.
func readLine(in io.Reader) string {
	var line []byte
	for b := make([]byte, 1); len(line) < 1<<10; {
		if n, err := in.Read(b); n == 0 || err != nil || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return string(line)
}
