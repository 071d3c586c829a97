package golden

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Results of a build.
const (
	changed   = fleet.Changed
	unchanged = fleet.Unchanged
)

// State is the state of an image.
type State string

const (
	Ready       State = "ready"
	Building    State = "building"
	Interrupted State = "interrupted" // the image's build was killed
	Failed      State = "failed"      // the image's last build failed, and left the screen and the serial log
	Damaged     State = "damaged"
	Missing     State = "missing" // no such image exists; a build would make it
)

// Image describes a golden image.
type Image struct {
	Key   string `json:"key"`
	State State  `json:"state"`
	// Reason explains the states interrupted, failed and damaged, or why UsedBy is not known.
	Reason string `json:"reason"`
	Content
	Created time.Time `json:"created"` // zero if that is not known
	Folder  string    `json:"folder"`
	Disk    int64     `json:"disk"` // bytes that the guest sees
	Size    int64     `json:"size"` // bytes on your machine's disk
	// BuildSeconds is how long the build of the image took.
	BuildSeconds float64 `json:"buildSeconds"`
	Accelerator  string  `json:"accelerator"` // of the build
	// UsedBy names the VMs whose disks are laid over the image.
	UsedBy []string `json:"usedBy"`
}

// fill adds the values that a manifest has.
func (i *Image) fill(m Manifest) {
	i.Content, i.Created, i.Disk, i.Accelerator = m.Content, m.Created, m.Disk, m.Accelerator
	i.BuildSeconds = m.total().Seconds()
}

// List is the result of `swdt vm image list`.
type List struct {
	Images []Image `json:"images"`
}

// Names returns the images as image/KEY.
func (l List) Names() (names []string) {
	for _, image := range l.Images {
		names = append(names, "image/"+image.Key)
	}
	return names
}

// Columns returns the columns of the table of a List. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	header := []string{"KEY", "WINDOWS", "BUILD", "SIZE", "MADE", "USED BY"}
	if wide {
		header = append(header, "ISO", "ACCELERATOR", "FOLDER")
	}
	return header
}

// WriteText writes a table of images.
func (l List) WriteText(w io.Writer) error {
	var rows [][]string
	for _, i := range l.Images {
		made := string(i.State)
		if i.State == Ready {
			made = ui.Age(time.Since(i.Created)) + " ago"
		}
		row := []string{i.Key, firstOf(i.Edition, i.Windows), i.Build, ui.Size(i.Size), made, strings.Join(i.UsedBy, " ")}
		if ui.IsWide(w) {
			row = append(row, i.ISO, i.Accelerator, i.Folder)
		}
		rows = append(rows, row)
	}
	if err := ui.TableOr(w, "there are no golden images; `swdt vm image build` makes one", Columns(ui.IsWide(w)), rows); err != nil {
		return err
	}
	for _, i := range l.Images {
		if i.Reason == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s is %s: %s\n", i.Key, i.State, i.Reason); err != nil {
			return err
		}
	}
	return nil
}

// Report is the result of a build for one node file.
type Report struct {
	fleet.Outcome
	Message string `json:"message"`
	Image   Image  `json:"image"`
}

func (s *Images) report(c *recipe, m Manifest, result, message string) Report {
	image := Image{Key: c.key, State: Ready, Folder: s.folder(c.key), UsedBy: []string{}}
	image.fill(m)
	image.Size = vm.Used(image.Folder)
	if users, err := s.machines.Users(); err == nil {
		image.UsedBy = namesOf(users[c.key])
	}
	return Report{Outcome: fleet.NewOutcome(c.machine.Name, result, nil), Message: message, Image: image}
}

// Reports are the results of a build for several node files.
type Reports struct {
	Builds []Report `json:"builds"`
}

// Result is a result for one node file.
type Result[T any] interface {
	// Of returns the result for the node with this name. If err is not nil, the result reports the
	// failure err.
	Of(name string, err error) T
}

// Of returns the report r. If err is not nil, it returns the report of a failed build for the node
// with this name instead.
func (r Report) Of(name string, err error) Report {
	if err != nil {
		return Report{Outcome: fleet.NewOutcome(name, fleet.Failed, err), Image: Image{UsedBy: []string{}}}
	}
	return r
}

// WriteText writes what was done for each node file that did not fail.
func (r Reports) WriteText(w io.Writer) error {
	for _, b := range r.Builds {
		if b.Error != "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n  %s, %s, %s\n", b.Name, b.Message, firstOf(b.Image.Edition, b.Image.Windows),
			ui.Size(b.Image.Size), b.Image.Folder); err != nil {
			return err
		}
	}
	return nil
}

// Removed is the result of `swdt vm image remove`.
type Removed struct {
	Images []string `json:"images"` // keys
}

// Names returns the images as image/KEY.
func (r Removed) Names() (names []string) {
	for _, key := range r.Images {
		names = append(names, "image/"+key)
	}
	return names
}

// WriteText writes the removed images.
func (r Removed) WriteText(w io.Writer) error {
	for _, key := range r.Images {
		if _, err := fmt.Fprintf(w, "image %s: removed\n", key); err != nil {
			return err
		}
	}
	return nil
}
