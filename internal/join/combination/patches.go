package combination

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// PatchCheck is the name of the doctor's rule for updates.
const PatchCheck = "windows-patches"

// Patch is an update of Windows that is known to break nodes, alone or with a switch in the registry or an image.
type Patch struct {
	ID       string
	Severity finding.Severity // of a node that has it
	// Windows are the builds that have it, Unsure those of which no source says whether they have it.
	Windows, Unsure []Windows
	// Switch is the switch that turns it on or off; the zero value: none.
	Switch PatchSwitch
	// Images are the revisions of images with which the node fails, as BUILD. or BUILD.REVISION; none: any.
	Images []string

	What    string   // the symptom
	Remedy  string   // the update or the switch that ends it
	Sources []string // URLs
	Seen    string   // the day on which the sources were read, such as 2026-11-29
}

// PatchSwitch is a switch in the registry on which a Patch depends.
type PatchSwitch struct {
	Key, Name string
	// Has and Protects report whether a node with this value has the fault, and whether it cannot have it once Windows or the
	// service of the switch has read the value. The registry does not show whether that happened since the value was set, as the
	// agent does not read when a key was written. For other values, and without the value, no source says which of the two it
	// is.
	Has, Protects func(value string) bool
}

// Patched are the facts about a node that the rows need.
type Patched struct {
	Build   string // such as 20348.2849
	Product string
	// Switches are the values of the registry, and NoSwitches is why they are unknown.
	Switches   func(key, name string) (value string, ok bool)
	NoSwitches string
	// Images are the versions of Windows in the node's images, such as 10.0.20348.2322, and NoImages is why they are unknown.
	Images   []string
	NoImages string
}

// FindPatches returns a finding for each Patch that the node has, and one of severity Info for each of which it is unknown
// whether the node has it, or against which a switch is set that Windows may not have read.
func FindPatches(p Patched) (all []finding.Finding) {
	for _, row := range Patches() {
		if found, ok := row.judge(p); ok {
			all = append(all, found)
		}
	}
	return all
}

// judge returns what there is to say about a node, and false if the node has not the fault.
func (r Patch) judge(p Patched) (finding.Finding, bool) {
	in, why := r.builds(p)
	if !in {
		return finding.Finding{}, false
	}
	seen, set := "Windows build "+p.Build, false
	if len(r.Images) > 0 {
		image := r.image(p.Images)
		switch {
		case image == "" && p.NoImages == "":
			return finding.Finding{}, false
		case image == "":
			why = "the node's images are unknown: " + p.NoImages
		default:
			seen += ", an image of " + image
		}
	}
	if r.Switch.Name != "" {
		value, ok := "", false
		if p.NoSwitches == "" {
			value, ok = p.Switches(r.Switch.Key, r.Switch.Name)
		}
		switch {
		case p.NoSwitches != "":
			why = "the registry is unknown: " + p.NoSwitches
		case !ok:
			why = fmt.Sprintf("%s is not set, and the default of the build is not published", r.Switch.Name)
		case r.Switch.Protects(value), r.Switch.Has(value):
			set = r.Switch.Protects(value)
			seen += fmt.Sprintf(", %s is %s: whether Windows has started since it was set is unknown", r.Switch.Name, value)
		default:
			why = fmt.Sprintf("%s is %s, of which no source says what it does", r.Switch.Name, value)
		}
	}
	found := finding.Finding{Severity: r.Severity, What: "the node has it: " + r.What, Remedy: r.Remedy}
	switch {
	case set:
		found.Severity = finding.Info
		found.What = r.Switch.Name + " is set against it, and takes effect when Windows or its service starts: " + r.What
		found.Remedy = "if Windows has not started since the value was set, restart it"
	case why != "":
		found.Severity, found.What = finding.Info, "it cannot be determined whether the node has it: "+r.What
	}
	if why != "" {
		seen += "; " + why
	}
	found.Evidence = seen + "; see " + strings.Join(r.Sources, ", ")
	return found, true
}

// builds reports whether the node's build has the fault or may have it. In the second case, it also returns why that is
// uncertain.
func (r Patch) builds(p Patched) (in bool, why string) {
	s := On(p.Build, p.Product)
	if slices.ContainsFunc(r.Windows, func(w Windows) bool { return w.has(s) }) {
		return true, ""
	}
	if slices.ContainsFunc(r.Unsure, func(w Windows) bool { return w.has(s) }) {
		return true, "no source says whether this revision still has it"
	}
	if _, revision, _ := strings.Cut(p.Build, "."); revision == "" {
		anyRevision := func(w Windows) bool {
			w.From, w.Before = 0, 0
			return w.has(s)
		}
		if slices.ContainsFunc(r.Windows, anyRevision) {
			return true, "the revision of Windows is unknown"
		}
	}
	return false, ""
}

// image returns the first version of images with which the node fails, or "".
func (r Patch) image(versions []string) string {
	for _, v := range versions {
		short := strings.TrimPrefix(v, "10.0.")
		if slices.ContainsFunc(r.Images, func(want string) bool {
			return short == want || strings.HasSuffix(want, ".") && strings.HasPrefix(short, want)
		}) {
			return v
		}
	}
	return ""
}

// is returns a function that reports whether a value is this one.
func is(want string) func(string) bool { return func(value string) bool { return value == want } }

// hasBit returns a function that reports whether a number has a bit.
func hasBit(bit uint64) func(string) bool {
	return func(value string) bool {
		number, err := strconv.ParseUint(value, 10, 64)
		return err == nil && number&bit != 0
	}
}

func no(string) bool { return false }
