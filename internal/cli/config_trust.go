package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/config/trust"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) configTrustCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trust [FILE…]",
		Short: "Let swdt use a node file that it finds in the working folder",
		Long: `A swdt.yaml in the working folder may be a stranger's, and it chooses hosts,
secrets, images and programs. So swdt uses it only after you have trusted it: here, or
when swdt asks on a terminal. A file that --config or SWDT_CONFIG names is never asked
about, and neither is the config.yaml of your home.

You trust the things that the file uses with your rights: hosts and their keys, users, the
places of secrets, kubeconfigs with their content, namespaces, images, hosts and
variables of URLs, and build: lines. If one of these changes, swdt asks again, and shows
the change. Another version or another local path changes nothing.

A file that another account can change cannot be trusted.`,
		Example: examples(
			"config trust", "swdt.yaml of this folder",
			"config list", "all that you trust, and what they may use",
			"config untrust", "",
		),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(_ *cobra.Command, files []string) error {
			return a.onTrusted(trust.Report{}, files, func(store trust.Store, file string) (trust.Record, error) {
				if err := localfile.CheckForeign(file); errors.As(err, new(*localfile.ForeignError)) {
					return trust.Record{}, fileError(file, err.Error(), "make it and the folders above it yours alone")
				}
				return trustFile(store, file)
			})
		},
	}
}

func (a *app) configUntrustCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "untrust [FILE…]",
		Short:   "Take back what config trust has recorded",
		Example: examples("config untrust", "swdt.yaml of this folder"),
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, files []string) error {
			return a.onTrusted(trust.Report{Ended: true}, files, func(store trust.Store, file string) (trust.Record, error) {
				record, found, err := store.Forget(file)
				if err == nil && !found {
					err = fileError(file, "is not trusted", "`swdt config list` lists the trusted files")
				}
				return record, err
			})
		},
	}
}

func (a *app) configListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the trusted node files, and what they may use",
		Example: examples("config list", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			store, err := trust.UserStore()
			if err != nil {
				return err
			}
			records, err := store.Records()
			if err != nil {
				return err
			}
			return a.printTrusted(trust.Report{Files: records})
		},
	}
}

// onTrusted does the work on each file, by default on those of --config or else on swdt.yaml, and prints the report with the records.
func (a *app) onTrusted(report trust.Report, files []string, work func(trust.Store, string) (trust.Record, error)) error {
	if len(files) == 0 {
		files = a.global.config
	}
	if len(files) == 0 {
		files = []string{config.HereSource}
	}
	store, err := trust.UserStore()
	if err != nil {
		return err
	}
	for _, file := range files {
		record, err := work(store, file)
		if err != nil {
			return err
		}
		report.Files = append(report.Files, record)
	}
	return a.printTrusted(report)
}

func (a *app) printTrusted(report trust.Report) error {
	return a.print(report, func(p *ui.Page) error { return report.WriteText(p) })
}

// trustFile records that the user trusts a node file.
func trustFile(store trust.Store, file string) (trust.Record, error) {
	claims, err := claimsOf(file)
	if err != nil {
		return trust.Record{}, err
	}
	return store.Trust(file, claims, time.Now())
}

// claimsOf returns what a node file uses with the user's rights. The error is a *config.Error.
func claimsOf(file string) ([]trust.Claim, error) {
	nodes, clusters, err := config.LoadDocuments([]string{file}, nil)
	if err != nil {
		return nil, err
	}
	claims, err := trust.Claims(nodes, clusters)
	if err != nil {
		return nil, fileError(file, fmt.Sprintf("names a file that cannot be trusted: %v", err),
			"make it a file that you can read, and that you alone can change")
	}
	return claims, nil
}

// checkTrust returns an error unless the user has agreed to what a node file uses that swdt has found in the working
// folder. It asks if there is a terminal.
func (a *app) checkTrust(found string) error {
	claims, err := claimsOf(found)
	if err != nil {
		return err
	}
	store, err := trust.UserStore()
	if err != nil {
		return err
	}
	record, known, err := store.Of(found)
	if err != nil {
		return fileError(found, fmt.Sprintf("was found, not named, and the record of your trust cannot be used: %v", err),
			nameIt(found))
	}
	changes := trust.Changes(record.Claims, claims)
	if known && len(changes) == 0 {
		return nil
	}
	if a.agrees(found, question(found, claims, changes, known)) {
		_, err := store.Trust(found, claims, time.Now())
		return err
	}
	if !known {
		return fileError(found, "was found, not named, and you have not trusted it",
			"read it, then run `swdt config trust`, or name it: -c "+found)
	}
	return fileError(found, "was found, not named, and has changed since you trusted it: "+strings.Join(changes, "; "),
		"read it, then run `swdt config trust`, or name it: -c "+found)
}

// trusts reports whether the user has agreed to what a found node file uses. It asks nothing.
func (a *app) trusts(found string) bool {
	claims, err := claimsOf(found)
	if err != nil {
		return false
	}
	store, err := trust.UserStore()
	if err != nil {
		return false
	}
	record, known, err := store.Of(found)
	return err == nil && known && len(trust.Changes(record.Claims, claims)) == 0
}

// agrees asks the user about a file that was found. A completion asks nothing.
func (a *app) agrees(found, question string) bool {
	if a.completing() {
		return false
	}
	prompt := a.prompter(a.newStory())
	if prompt == nil {
		return false
	}
	yes, err := prompt.Confirm(a.invoked.Context(), question)
	return err == nil && yes
}

// question says what a file uses, or how that has changed.
func question(found string, claims []trust.Claim, changes []string, known bool) string {
	if !known {
		return fmt.Sprintf("swdt found %s here. You did not name it. With your rights, it uses:\n%sTrust it?",
			found, trust.Text(claims))
	}
	text := found + " has changed since you trusted it:\n"
	for _, change := range changes {
		text += "  " + change + "\n"
	}
	return text + "Trust it now?"
}

func nameIt(file string) string { return "if you trust it, name it: -c " + file }

func fileError(file, what, remedy string) error {
	return &config.Error{Problems: []config.Problem{{File: file, What: what, Remedy: remedy}}}
}

// writeStarter writes a file to start from, unless there is a file, and trusts it.
func (a *app) writeStarter(file string, text []byte) error {
	created, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fileError(file, "exists, and is not replaced", "name another file, or remove it")
	}
	if err != nil {
		return fmt.Errorf("write the node file: %w", err)
	}
	_, err = created.Write(text)
	if err := errors.Join(err, created.Close()); err != nil {
		return fmt.Errorf("write the node file: %w", err)
	}
	store, err := trust.UserStore()
	if err != nil {
		return err
	}
	if _, err := trustFile(store, file); err != nil {
		return err
	}
	fmt.Fprintf(a.streams.Err, "%s is written, and trusted\n", file)
	return nil
}
