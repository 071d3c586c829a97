package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/capture"
)

func (a *app) captureVFPCommand() *cobra.Command {
	o := &capture.PortSelection{}
	cmd := forNodes(&cobra.Command{
		Use: "vfp [flags]", Short: "Show the packet counters of the virtual switch, by port",
		Long: `Shows the counters of the virtual filtering platform (VFP), which applies
policies and load balancing in the virtual switch: for each port its owner, the
packets and bytes out to the switch and in from it, and the packets dropped,
with the layer that dropped them.

For ports that --vfp-port or --pod names, it shows every counter. JSON and YAML
always have all counters.`,
		Example: examples(
			"capture vfp", "every port, with its owner",
			"capture vfp --pod default/web-0", "every counter of a pod's port",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPorts(o); err != nil {
				return err
			}
			return a.runVFP(cmd.Context(), o)
		},
	})
	cmd.Flags().StringSliceVar(&o.Ports, "vfp-port", nil, "only this port: its `GUID`, as vfpctrl names it")
	cmd.Flags().StringSliceVar(&o.Pods, "pod", nil, "only the ports of this pod, as `NAMESPACE/NAME`")
	must(cmd.RegisterFlagCompletionFunc("pod", listed(a.completePods)))
	return cmd
}

func checkPorts(o *capture.PortSelection) error {
	for _, port := range o.Ports {
		if !capture.IsGUID(port) {
			return usagef("--vfp-port %s: a port's name is a GUID, such as 2BE5EAA5-2F4D-4D85-8F6E-0C6C0F1C3A11", port)
		}
	}
	for _, pod := range o.Pods {
		if err := capture.ParseName(pod); err != nil {
			return usagef("--pod: %v", err)
		}
	}
	return nil
}

func (a *app) runVFP(ctx context.Context, o *capture.PortSelection) error {
	results, err := a.askNodes(ctx, o.Ask)
	if err != nil {
		return err
	}
	capture.ExcuseMissing(results)
	return a.printAnswers(results)
}
