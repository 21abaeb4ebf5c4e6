package setupcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/policy"
)

func trustCommand(o Options) *cobra.Command {
	var deny, forget bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let turns write in a directory, from now on",
		Long: "Trust a directory and what is in it: turns may write there, unless sandbox_mode or a flag says otherwise. Commands still run in\n" +
			"the sandbox. Without DIR it is the working directory; in a git repository, the whole repository.",
		Example: "  fermata trust\n  fermata trust ~/src/project\n  fermata trust --forget",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if deny && forget {
				return usage("trust: --deny and --forget exclude each other")
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
	cmd.Flags().BoolVar(&forget, "forget", false, "forget what was said of the directory")
	return cmd
}

func permissionsCommand(o Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "permissions",
		Short: "List what turns may do in this directory without a question",
		Long: "List whether the directory is trusted, and the commands that run in it without a question and outside the sandbox. They are kept in\n" +
			"the project's table of the configuration file; rules/*.rules beside it, in the form that Codex uses, count too.",
		Example: "  fermata permissions\n  fermata permissions allow go test\n  fermata permissions revoke go test",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			l, err := o.Load(dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "%s: %s\n", app.Tilde(project.Dir(l.Options.Cwd)), trustWord(l.Projects.Trust(l.Options.Cwd)))
			for _, perm := range l.Projects.Permissions(l.Options.Cwd) {
				fmt.Fprintf(o.Out, "  %s …  (in %s)\n", perm, app.Tilde(perm.Dir))
			}
			return nil
		},
	}
	cmd.PersistentFlags().StringVarP(&dir, "cd", "C", "", "the permissions of `DIR`")
	change := func(use, short, example string, do func(*project.Store, project.Permission) error) *cobra.Command {
		return &cobra.Command{
			Use: use + " COMMAND…", Short: short, Example: example, DisableFlagsInUseLine: true,
			Args: args(cobra.MinimumNArgs(1)),
			RunE: func(_ *cobra.Command, a []string) error {
				l, err := o.Load(dir)
				if err != nil {
					return err
				}
				words := a
				if len(a) == 1 {
					var ok bool
					if words, ok = policy.SplitWords(a[0]); !ok {
						return usage("%s: %q is not the beginning of one command", use, a[0])
					}
				}
				perm := project.Permission{Dir: project.Dir(l.Options.Cwd), Prefix: words}
				if err := do(l.Projects, perm); err != nil {
					return err
				}
				_, err = fmt.Fprintf(o.Err, "%s: `%s` in %s\n", strings.TrimSuffix(use, "e")+"ed", perm, app.Tilde(perm.Dir))
				return err
			},
		}
	}
	allow := change("allow", "Let commands that start with these words run without a question", "  fermata permissions allow go test\n  fermata permissions allow \"make -n\"", (*project.Store).Allow)
	revoke := change("revoke", "Take a permission back", "  fermata permissions revoke go test", (*project.Store).Revoke)
	allow.Flags().SetInterspersed(false) // what follows are the command's own options
	revoke.Flags().SetInterspersed(false)
	cmd.AddCommand(allow, revoke)
	return cmd
}
