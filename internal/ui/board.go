package ui

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
)

// Board shows the tasks of a command, several of which may run at the same time. On a terminal, the
// board is a table below the other lines, with a row for each task: its state, how long it has run,
// how long it took before, and its current step. Without a terminal, the board writes a line when a
// task begins and when it ends, and the reports on a long step contain the time of the task.
//
// A nil Board shows nothing. All methods are safe for concurrent use.
type Board struct {
	story *Story
	own   string // the label of lines about tasks without a node

	// held while rows are shown, so that they stay in order; the method fill never locks it
	drawing sync.Mutex
	header  liveLine

	mutex sync.Mutex
	tasks []*Task
}

// Task is one row of a Board. A nil Task shows nothing.
type Task struct {
	board *Board
	title string
	node  string
	row   liveLine

	// The fields below are guarded by board.mutex.
	state        string // TaskWaiting, TaskRunning, or the result
	note         string // the text after the end
	begun, ended time.Time
	before       Before // how long the task took before; nil: unknown
	downloads    bool
}

// The states of a task that has not ended.
const (
	TaskWaiting = "waiting"
	TaskRunning = "running"
)

// NewBoard returns a board without tasks. own is the name in the lines about tasks without a node.
func (s *Story) NewBoard(own string) *Board {
	b := &Board{story: s, own: own}
	b.header.render = b.titles
	return b
}

// Add adds a task that waits. Tasks are shown in the order in which they were added. node is the name
// of the node that the task works on; empty: none.
func (b *Board) Add(title, node string) *Task {
	if b == nil {
		return nil
	}
	t := &Task{board: b, title: title, node: node, state: TaskWaiting}
	t.row.render = t.text
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.tasks = append(b.tasks, t)
	return t
}

// Reporter returns the reporter of a node or, if the name is "", of the tasks without a node. The
// reporter's steps and transfers belong to the node's running task.
func (b *Board) Reporter(node string) Reporter {
	lines := &reporter{story: b.story, node: b.label(node), about: func() string { return b.about(node) }}
	if b.story.live == nil {
		return &lineBoardReporter{lines, b}
	}
	return &boardReporter{newLiveReporter(lines, b.story.live), b, node}
}

func (b *Board) label(node string) string {
	if node == "" {
		return b.own
	}
	return node
}

// Before returns how long a task took in earlier runs, as a text such as "about 40 s"; "" if that
// is not known. Its arguments are the time that the task has run so far, and whether the task has
// downloaded something. Before must not call methods of the board.
type Before func(elapsed time.Duration, downloads bool) string

// Begin marks the task as running. If its argument is nil, the board does not show how long the
// task took before.
func (t *Task) Begin(before Before) {
	if t == nil {
		return
	}
	t.board.mutex.Lock()
	t.state, t.begun, t.before = TaskRunning, t.board.now(), before
	text := t.title + " begins"
	if expected := t.expected(); expected != "" {
		text += ", took " + expected + " before"
	}
	t.board.mutex.Unlock()
	t.line(text)
}

// End marks the task as ended with a result, such as changed. note is a text about the result.
func (t *Task) End(result, note string) {
	if t == nil {
		return
	}
	t.board.mutex.Lock()
	t.state, t.note, t.ended = result, note, t.board.now()
	text := t.title + " " + result
	switch {
	case !t.begun.IsZero():
		text += " after " + Seconds(t.ended.Sub(t.begun))
	case note != "":
		text += ": " + note
	}
	t.board.mutex.Unlock()
	t.line(text)
}

// Downloads reports whether something was downloaded while the task ran (see Downloading): such a run
// takes longer than the next one.
func (t *Task) Downloads() bool {
	if t == nil {
		return false
	}
	t.board.mutex.Lock()
	defer t.board.mutex.Unlock()
	return t.downloads
}

// line writes a line about the task, unless the board is a table.
func (t *Task) line(text string) {
	b := t.board
	if b.story.live != nil {
		b.show()
		return
	}
	b.story.line(levelInfo, b.label(t.node), text)
}

// Downloading informs the reporter of some work that this work downloads something. The next run
// will find the downloaded data on your machine. Work on other nodes may wait for the same
// download.
func Downloading(r Reporter) {
	if d, ok := r.(interface{ downloading() }); ok {
		d.downloading()
	}
}

// downloading records a download for all running tasks, since they may share the download.
func (b *Board) downloading() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, t := range b.tasks {
		t.downloads = t.downloads || t.state == TaskRunning
	}
}

func (b *Board) now() time.Time { return b.story.options.Now() }

// running returns the running task of a node; nil if no task of the node is running.
func (b *Board) running(node string) *Task {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, t := range b.tasks {
		if t.node == node && t.state == TaskRunning {
			return t
		}
	}
	return nil
}

// about returns a text about the running task of a node, for a line about a long step of this task.
func (b *Board) about(node string) string {
	t := b.running(node)
	if t == nil {
		return ""
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	text := "; " + t.title + " for " + clock(b.now().Sub(t.begun))
	if expected := t.expected(); expected != "" {
		text += ", took " + expected + " before"
	}
	return text
}

// expected returns how long the task took before. board.mutex must be held.
func (t *Task) expected() string {
	if t.before == nil || t.begun.IsZero() {
		return ""
	}
	return t.before(t.board.now().Sub(t.begun), t.downloads)
}

// show makes the rows visible, in their order. A question may have removed the rows before.
func (b *Board) show() {
	b.drawing.Lock()
	defer b.drawing.Unlock()
	b.story.live.show(&b.header)
	b.mutex.Lock()
	tasks := b.tasks
	b.mutex.Unlock()
	for _, t := range tasks {
		b.story.live.show(&t.row)
	}
}

// titles returns the header of the table.
func (b *Board) titles() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.cells("STAGE", "NODE", "STATE", "FOR", "BEFORE", "NOW")
}

// text returns the row of the task.
func (t *Task) text() string {
	now := t.row.current()
	b := t.board
	b.mutex.Lock()
	defer b.mutex.Unlock()
	elapsed := ""
	switch {
	case t.begun.IsZero():
	case t.ended.IsZero():
		elapsed = clock(b.now().Sub(t.begun))
	default:
		elapsed = clock(t.ended.Sub(t.begun))
	}
	if t.state != TaskRunning {
		now, _, _ = strings.Cut(t.note, "\n")
	}
	return b.cells(t.title, t.node, t.state, elapsed, t.expected(), now)
}

// The widths of the columns whose cells change.
const stateWidth, clockWidth, beforeWidth = 9, 6, 12

// cells aligns the cells of a row. b.mutex must be held.
func (b *Board) cells(title, node, state, elapsed, before, now string) string {
	titles, nodes := len("STAGE"), len("NODE")
	for _, t := range b.tasks {
		titles, nodes = max(titles, runewidth.StringWidth(t.title)), max(nodes, runewidth.StringWidth(t.node))
	}
	row := ""
	for _, cell := range []struct {
		text  string
		width int
	}{{title, titles}, {node, nodes}, {state, stateWidth}, {elapsed, clockWidth}, {before, beforeWidth}} {
		row += runewidth.FillRight(cell.text, cell.width) + "  "
	}
	return strings.TrimRight(row+now, " ")
}

// clock formats the time that a task has run, in whole seconds: 12s, 1m05s.
func clock(d time.Duration) string {
	seconds := int(max(d, 0).Seconds())
	if seconds < 60 {
		return fmt.Sprintf("%ds", seconds)
	}
	return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
}

// boardReporter shows steps and transfers in the row of the node's running task. Before the first
// task of the node runs, the reporter has a line of its own, as without a board.
type boardReporter struct {
	*liveReporter
	board *Board
	node  string
}

func (r *boardReporter) Step(format string, args ...any) {
	t := r.board.running(r.node)
	if t == nil {
		r.liveReporter.Step(format, args...)
		return
	}
	r.Done()
	t.row.set(fmt.Sprintf(format, args...))
	r.board.show()
}

func (r *boardReporter) Transfer(label string, total int64) Progress {
	t := r.board.running(r.node)
	if t == nil {
		return r.liveReporter.Transfer(label, total)
	}
	r.Done()
	return t.row.begin(newCounter(r.story.options.Now, label, total))
}

func (r *boardReporter) downloading() { r.board.downloading() }

// lineBoardReporter writes lines.
type lineBoardReporter struct {
	*reporter
	board *Board
}

func (r *lineBoardReporter) downloading() { r.board.downloading() }
