package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

type eventsOptions struct {
	selection
	channels []string
	ids      []int
}

func (a *app) eventsCommand() *cobra.Command {
	o := &eventsOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "events [flags]",
		Short: "Show the event log of Windows: services, containers, networks",
		Long: `Shows the event log of nodes, merged by time across channels and nodes. A
channel is a name as Windows has it, in which * matches anything, or one of

` + channelTable() + `
Without --channel it is ` + strings.Join(events.Defaults(), ", ") + `.

The node's own wevtutil.exe filters by channel, id, level and time; --grep is
applied here. -o json prints one line of JSON for each event.`,
		Example: examples(
			"events --since 1h --level warning", "what went wrong lately",
			"events --channel services -f", "services that start, stop and crash, live",
			"events --channel hns --channel hcs --tail 20", "",
			"events --channel System --id 7031,7034", "services that ended unexpectedly",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runEvents(cmd, o) },
	})
	o.addFlags(cmd, "events")
	must(cmd.Flags().MarkHidden("timestamps")) // events always have their timestamps
	cmd.Flags().StringArrayVar(&o.channels, "channel",
		nil, "`name` of a channel or of a group above; repeat the flag for more")
	cmd.Flags().IntSliceVar(&o.ids, "id", nil, "only events with these `numbers`")
	must(cmd.RegisterFlagCompletionFunc("channel", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		var names []string
		for _, group := range events.Groups() {
			names = append(names, group.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}))
	return cmd
}

func channelTable() string {
	var text strings.Builder
	for _, group := range events.Groups() {
		text.WriteString("  " + group.Name + strings.Repeat(" ", 13-len(group.Name)) + group.About + "\n")
	}
	return text.String()
}

func (a *app) runEvents(cmd *cobra.Command, o *eventsOptions) error {
	options, err := o.complete(cmd, time.Now())
	if err != nil {
		return err
	}
	channels := o.channels
	if len(channels) == 0 {
		channels = events.Defaults()
	}
	for _, name := range channels {
		if err := events.CheckName(name); err != nil {
			return usagef("--channel: %v", err)
		}
		options.Sources = append(options.Sources, "event:"+name)
	}
	if slices.ContainsFunc(o.ids, func(id int) bool { return id < 0 || id > 0xffff }) {
		return usagef("--id: events have numbers from 0 to 65535")
	}
	options.EventIDs = o.ids
	return a.showLogs(cmd.Context(), options, &logsOptions{selection: o.selection, source: string(logs.SSH)})
}
