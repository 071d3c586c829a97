package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// Component is a part of a node's network stack in which pktmon observes packets.
type Component struct {
	ID, Name string
	MAC      string // "" if the component has none
	Pod      string // NAMESPACE/NAME of the pod that owns the adapter; empty: none
}

// Components returns all components of the node's network stack by their IDs, as the node's pktmon
// lists them. It returns nil if the node's pktmon refuses to list them as JSON.
func Components(ctx context.Context, programs Programs) (map[string]Component, error) {
	d, err := Learn(ctx, programs)
	if err != nil {
		return nil, err
	}
	text, err := output(ctx, programs, append(d.List, "--json")...)
	var refused *captureplan.CommandError
	if errors.As(err, &refused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseComponents(text)
}

// parseComponents parses pktmon's list of groups of components. It accepts the forms of all builds
// of Windows: some builds write numbers as texts. It returns nil if text does not begin with a
// bracket, since text is not a JSON list.
func parseComponents(text string) (map[string]Component, error) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if !strings.HasPrefix(text, "[") {
		return nil, nil
	}
	var groups []struct {
		Components []struct {
			ID         any `json:"Id"`
			Name       string
			Properties []struct {
				Name  string
				Value any
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&groups); err != nil {
		return nil, fmt.Errorf("read pktmon's list of components: %w", err)
	}
	all := map[string]Component{}
	for _, group := range groups {
		for _, c := range group.Components {
			one := Component{ID: fmt.Sprint(c.ID), Name: strings.TrimSpace(c.Name)}
			for _, p := range c.Properties {
				if p.Name == "MAC Address" {
					one.MAC = fmt.Sprint(p.Value)
				}
			}
			all[one.ID] = one
		}
	}
	return all, nil
}

// Own sets the pod of each component: the pod that has a local endpoint with the component's MAC
// address.
func Own(components map[string]Component, state hns.State, known hns.Known) {
	owners := map[string]string{}
	for _, e := range state.Endpoints {
		if pod := known.PodOf(e); e.MAC != "" && !e.Remote && pod != hns.None && pod != hns.Unknown {
			owners[plainMAC(e.MAC)] = pod
		}
	}
	for id, c := range components {
		if c.MAC != "" {
			c.Pod = owners[plainMAC(c.MAC)]
			components[id] = c
		}
	}
}

// plainMAC returns a MAC address without separators.
func plainMAC(mac string) string {
	return strings.ToUpper(strings.NewReplacer("-", "", ":", "", ".", "").Replace(mac))
}
