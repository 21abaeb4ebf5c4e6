package setupcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
)

func trustCommand(o Options) *cobra.Command {
	var deny, forget bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let turns write in a directory, from now on",
		Long: "Trust a directory and what is in it: turns may write there, unless sandbox_mode or a flag says otherwise. Commands still run in\n" +
			"the sandbox. Without DIR it is the working directory; in a git repository, the whole repository.",
		Example: "  fermata trust\n  fermata trust ~/src/project\n  fermata trust --forget",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if deny && forget {
				return cli.Usagef("trust: --deny and --forget exclude each other")
			}
			dir := ""
			if len(a) > 0 {
				dir = a[0]
			}
			l, err := o.Load(dir)
			if err != nil {
				return err
			}
			level, word := project.Trusted, "trusted"
			switch {
			case deny:
				level, word = project.Untrusted, "not trusted"
			case forget:
				level, word = "", "forgotten"
			}
			if err := l.Projects.SetTrust(l.Options.Cwd, level); err != nil {
				return err
			}
			_, err = fmt.Fprintf(o.Err, "%s: %s\n", word, app.Tilde(project.Dir(l.Options.Cwd)))
			return err
		},
	}
	cmd.Flags().BoolVar(&deny, "deny", false, "remember that the directory is not trusted")
	cmd.Flags().BoolVar(&forget, "forget", false, "remove the decision about the directory")
	return cmd
}
