package cni

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Settings are the user's wishes. An empty field means that the cluster decides.
type Settings struct {
	Network        Network
	PodCIDR        string
	ServiceCIDRs   []string
	APIServer      string // host:port
	KubeProxyImage string // default: the published image for the cluster's version
	// KubeProxy is the form of kube-proxy. Default: the form that the cluster has recorded.
	KubeProxy cluster.KubeProxyForm
}

// Wanted has the settings, completed with the facts. It determines the objects of a pod network. For
// Antrea, it has only the API server's address.
type Wanted struct {
	Network        Network
	PodCIDR        netip.Prefix // IPv4
	ServiceCIDRs   []netip.Prefix
	APIServerHost  string
	APIServerPort  int
	KubeProxyImage string
	// KubeProxy is the form of kube-proxy; "" if none was chosen, so that it is the DaemonSet.
	KubeProxy cluster.KubeProxyForm
}

// SettingError reports a setting that is wrong, or that the cluster does not reveal.
type SettingError struct {
	Flag string // the flag for the setting
	What string
	Err  error // may be nil
}

func (e *SettingError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s; set --%s", e.Reason(), e.Flag)
	}
	return fmt.Sprintf("%s: set --%s", e.Reason(), e.Flag)
}

// Reason returns the error without its remedy, for a command that lacks the flag.
func (e *SettingError) Reason() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.What, e.Err)
	}
	return e.What
}

func (e *SettingError) Unwrap() error { return e.Err }

// OtherNetworkError reports that the cluster has another pod network.
type OtherNetworkError struct {
	Wanted Network
	Found  string
}

func (e *OtherNetworkError) Error() string {
	return fmt.Sprintf("the cluster already has the pod network %s, and two do not work together: remove it before you "+
		"install %s; for a cluster of kind, set networking.disableDefaultCNI and make the cluster again", e.Found, e.Wanted)
}

// Complete joins the settings with the facts. It returns all problems: *SettingErrors, and an
// *OtherNetworkError if the cluster has another pod network.
func (s Settings) Complete(f Facts) (Wanted, error) {
	w := Wanted{Network: s.Network, KubeProxyImage: s.KubeProxyImage, KubeProxy: s.KubeProxy}
	if w.KubeProxyImage == "" {
		w.KubeProxyImage = kubeProxyImage(f.Version)
	}
	if s.Network == Antrea { // its agents read the addresses of pods and Services from the cluster
		return w, errors.Join(s.checkOthers(f), s.completeAPIServer(&w, f))
	}
	return w, errors.Join(s.checkOthers(f), s.completePods(&w, f), s.completeServices(&w, f), w.overlap(),
		s.completeAPIServer(&w, f))
}

func (s Settings) checkOthers(f Facts) error {
	found := f.OtherNetwork
	switch {
	case f.Networks.Calico != nil && f.Networks.Calico.Operator && s.Network != Calico:
		found = "calico" // without an operator, there may be only the pools of a Calico that was removed
	case f.Networks.Flannel != nil && s.Network != Flannel:
		found = "flannel"
	case f.Networks.Antrea != nil && s.Network != Antrea:
		found = "antrea"
	}
	if found == "" {
		return nil
	}
	return &OtherNetworkError{Wanted: s.Network, Found: found}
}

// largestPodBits is the length of the longest prefix from which Calico can take a block.
const largestPodBits = 26

func (s Settings) completePods(w *Wanted, f Facts) error {
	const flag = "pod-cidr"
	candidates := f.PodCIDRs
	if s.PodCIDR != "" {
		candidates = []string{s.PodCIDR}
	}
	for _, text := range candidates {
		cidr, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return &SettingError{Flag: flag, What: "the pods' addresses", Err: err}
		case !cidr.Addr().Is4(): // on Windows, the VXLAN of Calico and flannel is only for IPv4
			continue
		case cidr.Bits() > largestPodBits:
			return &SettingError{Flag: flag, What: fmt.Sprintf("the pods' addresses %s are too few, a node needs a /%d", text,
				largestPodBits)}
		}
		w.PodCIDR = cidr.Masked()
		return nil
	}
	if len(candidates) > 0 {
		return &SettingError{Flag: flag, What: "the pods' addresses " + strings.Join(candidates, ", ") +
			" are not IPv4, which Windows requires"}
	}
	return &SettingError{Flag: flag, What: "the cluster does not reveal the pods' addresses"}
}

func (s Settings) completeServices(w *Wanted, f Facts) error {
	const flag = "service-cidr"
	candidates := f.ServiceCIDRs
	if len(s.ServiceCIDRs) > 0 {
		candidates = s.ServiceCIDRs
	}
	for _, text := range candidates {
		cidr, err := netip.ParsePrefix(text)
		if err != nil {
			return &SettingError{Flag: flag, What: "the Services' addresses", Err: err}
		}
		w.ServiceCIDRs = append(w.ServiceCIDRs, cidr.Masked())
	}
	if len(w.ServiceCIDRs) == 0 {
		return &SettingError{Flag: flag, What: "the cluster does not reveal the Services' addresses"}
	}
	return nil
}

// overlap returns an error if the addresses of pods overlap the addresses of Services.
func (w Wanted) overlap() error {
	for _, services := range w.ServiceCIDRs {
		if w.PodCIDR.IsValid() && w.PodCIDR.Overlaps(services) {
			return &SettingError{Flag: "pod-cidr", What: fmt.Sprintf("the pods' addresses %s overlap the Services' %s",
				w.PodCIDR, services)}
		}
	}
	return nil
}

func (s Settings) completeAPIServer(w *Wanted, f Facts) error {
	const flag = "api-server"
	address := f.APIServer
	if s.APIServer != "" {
		address = s.APIServer
	}
	if address == "" {
		return &SettingError{Flag: flag, What: "the cluster does not reveal an address of the API server that nodes can use"}
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil && host == "" {
		err = errNoHost
	}
	if err == nil {
		w.APIServerHost = host
		w.APIServerPort, err = strconv.Atoi(port)
	}
	if err != nil || w.APIServerPort < 1 || w.APIServerPort > 65535 {
		return &SettingError{Flag: flag + " HOST:PORT", What: "the API server's address " + strconv.Quote(address), Err: err}
	}
	return nil
}
