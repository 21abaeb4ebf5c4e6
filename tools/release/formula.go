package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeFormula writes the formula that Homebrew installs from, for the targets it knows.
func (r *release) writeFormula(context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, `class Fermata < Formula
  desc "Coding agent that can be interrupted at any time and resumed"
  homepage %q
  version %q
  license %q
`, homepage, r.number(), licence)
	for _, system := range []struct{ os, block string }{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		fmt.Fprintf(&b, "\n  %s do\n", system.block)
		for _, arch := range []struct{ name, block string }{{"arm64", "on_arm"}, {"amd64", "on_intel"}} {
			t := target{system.os, arch.name}
			if !slices.Contains(r.targets, t) {
				continue
			}
			sum, err := checksum(filepath.Join(r.out, r.archiveName(t)))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "    %s do\n      url %q\n      sha256 %q\n    end\n", arch.block, homepage+"/releases/download/"+r.version+"/"+r.archiveName(t), sum)
		}
		b.WriteString("  end\n")
	}
	b.WriteString(`
  def install
    bin.install "fermata"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/fermata.bash" => "fermata"
    fish_completion.install "completions/fermata.fish"
    zsh_completion.install "completions/_fermata"
    doc.install "LICENSES.txt", "CHANGELOG.md"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/fermata --version")
  end
end
`)
	return os.WriteFile(filepath.Join(r.out, "fermata.rb"), []byte(b.String()), 0o644)
}

func sortEntries(list []entry) {
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
}
