package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
)

// objectPrefix is before the name of a node in `kubectl get nodes -o name`, and in the arguments of kubectl.
const objectPrefix = "node/"

// pluginLong is the long help of the program under kubectl.
const pluginLong = `swdt looks into Windows nodes and pushes binaries to them: the kubelet.exe or
containerd.exe that you have just built. It restarts the services, and puts the
old binaries back if the new ones do not come up.

Nodes are those of the current kubeconfig, reached through the cluster, without
SSH. A node file (-c, SWDT_CONFIG) may say otherwise, and USER@HOST is a machine
that is reached over SSH.`

// implyCluster makes the nodes of this command those of the current kubeconfig, as --via kubernetes does, if kubectl
// runs swdt and neither a node file nor the form of a name says otherwise. The file that counts first is the one that the
// user names, then one that swdt has found.
func (a *app) implyCluster() {
	if !a.plugin() || a.global.via.text != "" || a.namesNodeFiles() || !a.clusterCanName() {
		return
	}
	if source, _ := config.DefaultSource(); source != "" && len(a.global.nodes) == 0 {
		return
	}
	a.global.via = viaFlag{text: viaKubernetes, implied: true}
	if !a.choosesInCluster() {
		a.global.via = viaFlag{}
	}
}

// clusterCanName reports whether --node of this command can be names of the cluster's Nodes alone. USER@HOST and HOST:PORT
// are names of SSH.
func (a *app) clusterCanName() bool {
	cmd := cmp.Or(a.completed, a.invoked)
	if cmd == nil {
		return false
	}
	path := pathBelow(cmd)
	first, _, _ := strings.Cut(path, " ")
	return !slices.Contains(needsSSH(), first) && !slices.Contains(onlyOfFiles(), first) && path != "config validate" &&
		!slices.ContainsFunc(a.global.nodes, func(name string) bool { return strings.ContainsAny(name, "@:") })
}

// takesNodes makes the arguments of a command names of nodes, as --node has them.
func (a *app) takesNodes(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.ValidArgsFunction = a.completeNodes
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			a.addNode(name)
		}
		return run(cmd, nil)
	}
	return cmd
}

// noFlags refuses arguments behind -- that look like flags: no node has such a name.
func noFlags(_ *cobra.Command, args []string) error {
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }); i >= 0 {
		return usagef("%s is no name of a node", args[i])
	}
	return nil
}

// addNode adds NAME or node/NAME to the names of --node.
func (a *app) addNode(name string) {
	a.global.nodes = append(a.global.nodes, strings.TrimPrefix(name, objectPrefix))
}

// nodesOutOf returns the arguments without those of the form node/NAME, which it adds to the names of --node.
func (a *app) nodesOutOf(args []string) (others []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, objectPrefix) {
			a.addNode(arg)
		} else {
			others = append(others, arg)
		}
	}
	return others
}

// nodeBeforeDashes returns the arguments behind --, if one word is before it, as in kubectl exec NAME -- CMD. The word
// names the node.
func (a *app) nodeBeforeDashes(args []string) []string {
	if len(args) < 3 || args[1] != "--" {
		return args
	}
	a.addNode(args[0])
	return args[2:]
}
