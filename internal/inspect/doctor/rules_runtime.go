package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func runtimeRules() []Rule {
	return []Rule{
		{
			ID: "containerd-config", Title: "containerd accepts its configuration", Severity: finding.Error,
			Needs: []string{"containerdConfig"}, Link: docsCRI,
			Means: "containerd exits the next time it starts, or does not answer kubelet.",
			Remedy: "correct the configuration: `swdt exec -- containerd config default` prints this containerd's " +
				"defaults, and `swdt join` writes a configuration of its version", look: lookAtContainerdConfig,
		},
		{
			ID: "containerd-config-version", Title: "containerd's configuration has containerd's version",
			Severity: finding.Warning, Needs: []string{"containerdConfig"}, Link: docsCRI,
			Means: "containerd converts an older configuration at every start, and silently ignores settings whose " +
				"place has changed.",
			Remedy: "`swdt exec -- containerd config migrate` prints the configuration in the current version",
			look:   lookAtConfigVersion,
		},
		{
			ID: "containerd-version", Title: "this kubelet supports this containerd", Severity: finding.Error,
			Needs: []string{"programs"}, Link: docsReleases,
			Means:  "kubelet calls functions that older runtimes lack: it exits, or works without them.",
			Remedy: "push a newer containerd: `swdt push --only containerd`", look: lookAtContainerdVersion,
		},
		{
			ID: "runtime-answers", Title: "the container runtime answers", Severity: finding.Error,
			Needs: []string{"runtime"}, Link: docsCRI,
			Means:  "kubelet cannot start, stop or see any container.",
			Remedy: "find the cause: `swdt logs containerd --tail 50`; `swdt status`", look: lookAtAnswer,
		},
		{
			ID: "runtime-ready", Title: "the container runtime is ready", Severity: finding.Error,
			Needs: []string{"runtime"}, Link: docsCRI,
			Means:  "kubelet starts no pod until the runtime reports that it is ready.",
			Remedy: "find the cause: `swdt logs containerd --tail 50`",
			look:   lookAtCondition("RuntimeReady", "the container runtime is not ready"),
		},
		{
			ID: "network-ready", Title: "the runtime has a pod network", Severity: finding.Error,
			Needs: []string{"runtime"}, Link: docsDebug,
			Means: "The node is NotReady, and pods stay in ContainerCreating: only pods on the host network start.",
			Remedy: "check the pod network's installer: `kubectl get pods -A -o wide`; `swdt logs calico` (or " +
				"flannel, antrea)", look: lookAtCondition("NetworkReady", "the runtime has no pod network"),
		},
		{
			ID: "runtime-handlers", Title: "containerd has the handler of each RuntimeClass",
			Severity: finding.Warning, Needs: []string{"containerdConfig", "runtimeClasses"}, Link: docsRunClass,
			Means: "A pod of such a RuntimeClass is scheduled on this node and stays in ContainerCreating: no " +
				"runtime is configured for it.",
			Remedy: "add the runtime to spec.kubernetes.containerd.config and run `swdt join`, or give the " +
				"RuntimeClass a scheduling.nodeSelector", look: lookAtHandlers,
		},
		{
			ID: "stopped-sandboxes", Title: "stopped pod sandboxes are removed", Severity: finding.Info,
			Needs: []string{"sandboxes"},
			Means: "kubelet removes stopped pod sandboxes regularly. If many remain, something in them cannot be " +
				"removed, and they take space.",
			Remedy: "`swdt cri pods` lists them; `swdt logs containerd` prints why they are not removed",
			look:   lookAtStopped, Link: docsCRI,
		},
	}
}

func lookAtContainerdConfig(f *Facts) []finding.Finding {
	if c := f.Containerd.Value; c.Refused != "" {
		return one(finding.New(c.Refused, "containerd refuses %s", c.Path))
	} else if c.Conflict != "" {
		return one(finding.New(c.Conflict, "containerd's CRI plugin refuses %s", c.Path))
	}
	return nil
}

func lookAtConfigVersion(f *Facts) []finding.Finding {
	c := f.Containerd.Value
	switch {
	case !c.Exists || c.Refused != "":
		return nil
	case c.FileVersion < 2:
		return one(finding.New(fmt.Sprintf("%s has version = %d", c.Path, c.FileVersion),
			"containerd's configuration has version 1, which containerd 2 no longer reads"))
	case c.FileVersion > c.Version && c.Version > 0:
		return one(finding.New(fmt.Sprintf("%s has version = %d", c.Path, c.FileVersion),
			"containerd's configuration is newer than containerd, which has version %d and ignores unknown settings",
			c.Version))
	case c.Version > c.FileVersion:
		return one(finding.New(fmt.Sprintf("%s has version = %d", c.Path, c.FileVersion),
			"containerd's configuration is older than containerd, which has version %d", c.Version).As(finding.Info))
	}
	return nil
}

// minorOf returns y of a version 1.y.z, and whether text is such a version.
func minorOf(text string) (int, bool) {
	v, err := version.ParseGeneric(text)
	if err != nil || v.Major() != 1 {
		return 0, false
	}
	return int(v.Minor()), true
}

// lookAtContainerdVersion applies two limits: kubelet 1.26 and later support only CRI v1, which
// containerd supports since 1.6, and kubelet 1.35 is the last version that supports containerd 1.x.
func lookAtContainerdVersion(f *Facts) []finding.Finding {
	kubelet, containerd := (*f.Programs.Value)["kubelet"].Version, (*f.Programs.Value)["containerd"].Version
	minor, ok := minorOf(kubelet)
	has, err := version.ParseGeneric(containerd)
	if !ok || err != nil {
		return nil
	}
	seen := "kubelet " + kubelet + ", containerd " + containerd
	switch {
	case minor >= 26 && has.LessThan(version.MustParseGeneric("1.6.0")):
		return one(finding.New(seen, "this kubelet needs CRI v1, which containerd has since 1.6"))
	case minor > 35 && has.Major() < 2:
		return one(finding.New(seen, "1.35 was the last Kubernetes that supports containerd 1").As(finding.Info))
	}
	return nil
}

func lookAtAnswer(f *Facts) []finding.Finding {
	r := f.Runtime.Value
	switch {
	case !r.Answers:
		return one(finding.New(r.Error, "no container runtime answers on %s", r.Pipe))
	case r.Error != "":
		return one(finding.New(r.Error, "the container runtime does not report its status"))
	}
	return nil
}

func lookAtCondition(kind, what string) func(*Facts) []finding.Finding {
	return func(f *Facts) []finding.Finding {
		c, ok := f.Runtime.Value.condition(kind)
		if !ok || c.Status {
			return nil
		}
		return one(finding.New(strings.Trim(c.Reason+": "+c.Message, ": "), "%s", what))
	}
}

func lookAtHandlers(f *Facts) (all []finding.Finding) {
	handlers := f.Containerd.Value.Handlers
	if len(handlers) == 0 {
		return nil // the configuration lists no handlers, so containerd's own defaults apply
	}
	for _, class := range *f.RuntimeClasses.Value {
		if slices.Contains(handlers, class.Handler) {
			continue
		}
		used := f.podOfClass(class.Name)
		if !class.Windows && used == "" {
			continue // the RuntimeClass is for other nodes of the cluster
		}
		seen := "containerd has " + strings.Join(handlers, ", ")
		if used != "" {
			seen = "pod " + used + "; " + seen
		}
		all = append(all, finding.New(seen, "containerd has no runtime %s, which RuntimeClass %s requires",
			class.Handler, class.Name))
	}
	return all
}

// podOfClass returns the name of a pod of this node that has the RuntimeClass, or "" if
// no known pod has it.
func (f *Facts) podOfClass(name string) string {
	if f.Pods.Value == nil {
		return ""
	}
	for _, p := range *f.Pods.Value {
		if p.RuntimeClass == name {
			return p.String()
		}
	}
	return ""
}

// manySandboxes is a number of stopped pod sandboxes that kubelet normally does not
// reach.
const manySandboxes = 100

func lookAtStopped(f *Facts) []finding.Finding {
	count := 0
	for _, s := range *f.Sandboxes.Value {
		if !s.Ready {
			count++
		}
	}
	if count < manySandboxes {
		return nil
	}
	return one(finding.New(fmt.Sprintf("%d of %d pod sandboxes are stopped", count, len(*f.Sandboxes.Value)),
		"many stopped pod sandboxes were not removed"))
}

func imageRules() []Rule {
	return []Rule{
		{
			ID: "pause-image", Title: "this Windows build runs the pause image", Severity: finding.Error,
			Needs: []string{"machine", "containerdConfig", "images"}, Link: docsImages,
			Means: "No pod starts except HostProcess ones, since every other pod contains a container of this image.",
			Remedy: "set spec.kubernetes.containerd.pauseImage to an image that supports this build, such as " +
				"registry.k8s.io/pause:3.10, and run `swdt join`", look: lookAtPause,
		},
		{
			ID: "image-mismatch", Title: "this Windows build runs the images of its pods", Severity: finding.Error,
			Needs: []string{"machine", "containers", "images"}, Link: docsImages,
			Means: "An image newer than the node's Windows never runs (HCS_E_IMAGE_MISMATCH, 0xc0370101), an older " +
				"one only with Hyper-V isolation. HostProcess containers always run.",
			Remedy: "use an image for this build, or keep the pod off this node: nodeSelector " +
				"node.kubernetes.io/windows-build", look: lookAtImagesInUse,
		},
		{
			ID: "image-store", Title: "images leave enough free space", Severity: finding.Warning,
			Needs: []string{"machine", "imageStoreBytes"},
			Means: "Windows' base images are large, and kubelet removes unused images only when the drive is 85% full.",
			Remedy: "`swdt cri images` lists the images; lower kubelet's imageGCHighThresholdPercent to have unused " +
				"images removed earlier", look: lookAtImageStore,
			Link: "https://kubernetes.io/docs/concepts/architecture/garbage-collection/#container-image-lifecycle",
		},
	}
}

// on returns the verdict on whether a machine with this build of Windows can run the
// image.
func (i Image) on(build string) imagefit.Verdict {
	return criclient.Platform{OS: i.OS, OSVersion: i.OSVersion}.On(build)
}

func (i Image) name() string {
	if len(i.Tags) > 0 {
		return i.Tags[0]
	}
	return i.ID
}

func (i Image) is(reference string) bool {
	return reference != "" && (reference == i.ID || slices.Contains(i.Tags, reference))
}

func (i Image) madeFor() string {
	return fmt.Sprintf("%s is for %s %s", i.name(), cmp.Or(i.OS, "an unknown system"), i.OSVersion)
}

func lookAtPause(f *Facts) []finding.Finding {
	build := f.Machine.Value.Build
	for _, image := range *f.Images.Value {
		if !image.is(f.Containerd.Value.SandboxImage) {
			continue
		}
		if v := image.on(build); v != imagefit.Runs && v != imagefit.Unknown {
			return one(finding.New(fmt.Sprintf("%s, the node has build %s", image.madeFor(), build),
				"this Windows build does not run the pause image (%s)", v))
		}
	}
	return nil
}

func lookAtImagesInUse(f *Facts) (all []finding.Finding) {
	build := f.Machine.Value.Build
	for _, image := range *f.Images.Value {
		v := image.on(build)
		if v == imagefit.Runs || v == imagefit.Unknown {
			continue
		}
		for _, c := range *f.InUse.Value {
			// A running container whose image does not fit the build is a HostProcess container or
			// isolated by Hyper-V.
			if c.State != "running" && image.is(c.Image) {
				all = append(all, finding.New(fmt.Sprintf("%s, the node has build %s", image.madeFor(), build),
					"container %s of pod %s has an image that this Windows build does not run (%s)", c.Name,
					f.podOf(c), v))
				break
			}
		}
	}
	return all
}

func (f *Facts) podOf(c Container) string {
	if f.Sandboxes.Value != nil {
		for _, s := range *f.Sandboxes.Value {
			if s.ID == c.Sandbox {
				return s.Namespace + "/" + s.Name
			}
		}
	}
	return cmp.Or(c.Sandbox, "unknown")
}

func lookAtImageStore(f *Facts) []finding.Finding {
	used, free := *f.ImageStore.Value, f.Machine.Value.DiskFree
	if used <= 2*free {
		return nil
	}
	return one(finding.New(fmt.Sprintf("%s in images and snapshots, %s free", size(used), size(free)),
		"images take more than twice the free space"))
}
