package cli

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// bashWithoutPackage makes the script for bash work without bash-completion.
//
//go:embed completion.bash
var bashWithoutPackage []byte

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes swdt's commands in your shell",
		Long: `Prints a script for your shell that completes commands, flags and names: nodes
and components of the node file, contexts of the kubeconfig, running sandboxes,
and, from the nodes themselves, pods, containers and the paths of "cp node:". A
node that does not answer within 3 seconds is left out.

bash needs no bash-completion, zsh needs compinit in ~/.zshrc.

  bash        source <(swdt completion bash)
  zsh         swdt completion zsh > "${fpath[1]}/_swdt"
  fish        swdt completion fish > ~/.config/fish/completions/swdt.fish
  powershell  swdt completion powershell | Out-String | Invoke-Expression`,
		Args:              arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs:         shells,
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), a.streams.Out
			switch args[0] {
			case "bash":
				if _, err := out.Write(bashWithoutPackage); err != nil {
					return err
				}
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return root.GenPowerShellCompletionWithDesc(out)
		},
	}
}

// completeOtherNames completes the other names of commands, once the user has begun to type one: cobra offers only the
// names.
func completeOtherNames(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, child := range cmd.Commands() {
		for _, alias := range child.Aliases {
			if toComplete != "" && strings.HasPrefix(alias, toComplete) {
				names = append(names, alias+"\tanother name of "+child.Name())
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// notTwice completes arguments and does not offer any of them a second time.
func notTwice(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		offered, directive := complete(cmd, args, toComplete)
		return slices.DeleteFunc(offered, func(one string) bool {
			value, _, _ := strings.Cut(one, "\t")
			return slices.Contains(args, value)
		}), directive
	}
}

// completionTimeout limits how long a completion may ask a node, a cluster or a
// sandbox, since the user waits at the prompt.
const completionTimeout = 3 * time.Second

// askedInTime returns what ask returns, or an error at the end of completionTimeout or of the command's context.
// client-go runs the exec plugin of a kubeconfig without a context, so that ask may outlast its own.
func askedInTime[T any](cmd *cobra.Command, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout)
	defer cancel()
	type result struct {
		answer T
		err    error
	}
	results := make(chan result, 1)
	go func() {
		answer, err := ask(ctx)
		results <- result{answer, err}
	}()
	select {
	case r := <-results:
		return r.answer, r.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}

// completeFileFlags makes the shell complete files for the flags that are marked as files of
// any name. Cobra itself would apply the default completion to these flags, which is to
// offer no files.
func completeFileFlags(cmd *cobra.Command) {
	mark := func(f *flag) {
		extensions, isFile := f.Annotations[cobra.BashCompFilenameExt]
		if _, has := cmd.GetFlagCompletionFunc(f.Name); isFile && len(extensions) == 0 && !has {
			must(cmd.RegisterFlagCompletionFunc(f.Name, completeFiles))
		}
	}
	cmd.Flags().VisitAll(mark) // and not LocalFlags, which compares the flags of all parents
	cmd.PersistentFlags().VisitAll(mark)
	for _, child := range cmd.Commands() {
		completeFileFlags(child)
	}
}

// listed completes a comma-separated list. It offers what complete offers for the
// element after the last comma, without the elements that the list already has.
func listed(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		done, last := "", toComplete
		if comma := strings.LastIndex(toComplete, ","); comma >= 0 {
			done, last = toComplete[:comma+1], toComplete[comma+1:]
		}
		offered, directive := complete(cmd, args, last)
		had := strings.Split(done, ",")
		var all []string
		for _, one := range offered {
			value, _, _ := strings.Cut(one, "\t")
			if strings.HasPrefix(value, last) && !slices.Contains(had, value) {
				all = append(all, done+one)
			}
		}
		return all, directive
	}
}
