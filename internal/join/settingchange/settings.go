// Package settingchange reads and changes the settings of kubelet and kube-proxy on a running node: feature gates, and
// fields of their configuration.
//
// A setting stays where it is: on the command line of the service, in the script that starts the program, in
// kubeadm-flags.env, in the configuration file or a drop-in of it. A change is checked against the version that runs
// there, by the rules of package upgradecheck, before anything is touched. It is one transaction of package push.
//
//   - settings.go: what is set, and where
//   - change.go: the wishes, and the texts that they give; place.go: the text that a wish changes
//   - flags.go: flags in command lines, scripts and kubeadm-flags.env
//   - check.go: what the version takes; guard.go: files that are not changed
//   - apply.go: the transaction; undo.go: the way back; report.go, fix.go: the results
package settingchange

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	kubeproxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/node"
)

// Settings are the settings of one program on one node.
type Settings struct {
	Program kubesettings.Program
	Version string // of the program; "": unknown

	minor   int // of the version; 0: it is unknown, or the table lacks it
	table   *kubesettings.Table
	texts   nodesettings.Texts
	facts   upgradecheck.Facts
	service *agentv1.ComponentState
}

// NoServiceError reports a program that is no service of the node.
type NoServiceError struct{ Program kubesettings.Program }

func (e *NoServiceError) Error() string {
	return fmt.Sprintf("there is no service %s on the node: `swdt services` lists them; a %s that is a pod has its settings in "+
		"its DaemonSet", e.Program, e.Program)
}

// Read reads the settings of a program. It changes nothing.
func Read(ctx context.Context, n *node.Node, p kubesettings.Program, table *kubesettings.Table) (*Settings, error) {
	texts, err := nodesettings.Gather(ctx, n, nodesettings.Options{})
	if err != nil {
		return nil, fmt.Errorf("read the settings of %s: %w", p, err)
	}
	return of(texts, p, table)
}

// of returns the settings of a program in the texts of a node.
func of(texts nodesettings.Texts, p kubesettings.Program, table *kubesettings.Table) (*Settings, error) {
	s := &Settings{Program: p, table: table, texts: texts, service: texts.Services[p], Version: texts.Node.Kubelet}
	if s.service == nil {
		return nil, &NoServiceError{Program: p}
	}
	if p == kubesettings.KubeProxy {
		s.Version = texts.Node.KubeProxy
	}
	if v, err := version.ParseGeneric(s.Version); err == nil && v.Major() == 1 && int(v.Minor()) >= table.Oldest() &&
		int(v.Minor()) <= table.Newest() {
		s.minor = int(v.Minor())
	}
	s.facts = factsOf(texts, p, table)
	return s, nil
}

// factsOf returns the settings of a program in the texts of a node.
func factsOf(texts nodesettings.Texts, p kubesettings.Program, table *kubesettings.Table) upgradecheck.Facts {
	facts := texts.Facts(table)
	facts.Settings = slices.DeleteFunc(facts.Settings, func(is upgradecheck.Setting) bool { return is.Program != p })
	return facts
}

// rank orders the forms of settings: a setting with a higher rank wins over others of the same name.
func rank(f upgradecheck.Form) int {
	switch f {
	case upgradecheck.ConfigFile:
		return 1
	case upgradecheck.DropIn:
		return 2
	}
	return 3 // a flag, wherever it is written
}

// effective returns the setting that the program uses; nil: it is not set.
func (s *Settings) effective(kind upgradecheck.Kind, name string) (found *upgradecheck.Setting) {
	for i := range s.facts.Settings {
		is := &s.facts.Settings[i]
		if is.Kind != kind || is.Name != name || is.Ignored != "" || s.ignoresFlags(*is) {
			continue
		}
		if found == nil || rank(is.Form) >= rank(found.Form) {
			found = is
		}
	}
	return found
}

// ignoresFlags reports whether kube-proxy does not read a flag, since the file of --config replaces it: all but the
// flags of logging and hostname-override (Options.Complete in cmd/kube-proxy/app/options.go of v1.36.3).
func (s *Settings) ignoresFlags(is upgradecheck.Setting) bool {
	return s.Program == kubesettings.KubeProxy && is.Kind == upgradecheck.FlagSetting && s.hasFile() &&
		!slices.Contains([]string{"config", "hostname-override", "v", "vmodule", "logging-format"}, is.Name)
}

// hasFile reports whether the program reads a configuration file.
func (s *Settings) hasFile() bool {
	return slices.ContainsFunc(s.texts.All, func(t nodesettings.Text) bool {
		return t.Program == s.Program && t.Kind == nodesettings.ConfigFile
	})
}

// document returns the type into which the program decodes its configuration.
func (s *Settings) document() reflect.Type {
	if s.Program == kubesettings.KubeProxy {
		return reflect.TypeFor[kubeproxyv1alpha1.KubeProxyConfiguration]()
	}
	return kubeletconfig.Kubelet()
}

// minorText returns the version as in "kubelet 1.36", or as in "kubelet v1.60.0" if the table lacks it.
func (s *Settings) minorText() string {
	if s.minor == 0 {
		return string(s.Program) + " " + orUnknown(s.Version)
	}
	return fmt.Sprintf("%s 1.%d", s.Program, s.minor)
}

// exe returns the file name of the program.
func (s *Settings) exe() string { return strings.ToLower(string(s.Program)) + ".exe" }
