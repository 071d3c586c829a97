package qmp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// jobLimit bounds each job, also if its context has a later deadline or none. A job may write the
// memory of a large VM to a slow disk.
const jobLimit = 30 * time.Minute

// dismissLimit bounds the removal of a job that has ended, even if the context has ended too.
const dismissLimit = 10 * time.Second

// jobFailed is the class of the Error of a job that failed. QEMU has no such class.
const jobFailed = "JobFailed"

// jobState is one row of query-jobs.
type jobState struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  string `json:"error"`
}

// RunJob starts a job by a command, and waits until the job has ended. It adds the job's ID to the
// command's arguments as "job-id". If the wait fails, for example because ctx ends first, RunJob
// cancels the job.
func (c *Client) RunJob(ctx context.Context, command, id string, arguments map[string]any) error {
	arguments["job-id"] = id
	if err := c.Run(ctx, command, arguments, nil); err != nil {
		return err
	}
	var failure string
	err := wait.Condition{
		Name: command + " to end", Interval: 10 * time.Millisecond, MaxInterval: 250 * time.Millisecond, Limit: jobLimit,
		Look: func(ctx context.Context) error {
			state, err := c.job(ctx, id)
			failure = state.Error
			var refused *Error
			if errors.As(err, &refused) || errors.Is(err, ErrClosed) {
				return wait.Stop(err)
			}
			if err == nil && state.Status != "concluded" {
				err = fmt.Errorf("the job is %s", state.Status)
			}
			return err
		},
	}.Wait(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), dismissLimit)
	defer cancel()
	if err != nil {
		_ = c.Run(after, "job-cancel", map[string]any{"id": id}, nil) // the job may have ended meanwhile
	}
	dismissed := c.Run(after, "job-dismiss", map[string]any{"id": id}, nil)
	switch {
	case err != nil:
		return err
	case failure != "":
		return &Error{Command: command, Class: jobFailed, Desc: failure}
	}
	return dismissed
}

// EndJobs waits until the jobs that another client has left have ended, and dismisses them. QEMU
// refuses a new job with the ID of a job that was not dismissed.
func (c *Client) EndJobs(ctx context.Context) error {
	return wait.Condition{
		Name: "earlier jobs of QEMU to end", Interval: 10 * time.Millisecond, MaxInterval: 250 * time.Millisecond,
		Limit: jobLimit, Look: c.dismissEnded,
	}.Wait(ctx)
}

// dismissEnded dismisses the jobs that have ended; the error names a job that still runs.
func (c *Client) dismissEnded(ctx context.Context) (running error) {
	jobs, err := c.jobs(ctx)
	if err != nil {
		return wait.Stop(err)
	}
	for _, j := range jobs {
		if j.Status != "concluded" {
			running = fmt.Errorf("job %s is %s", j.ID, j.Status)
			continue
		}
		if err := c.Run(ctx, "job-dismiss", map[string]any{"id": j.ID}, nil); err != nil {
			return wait.Stop(err)
		}
	}
	return running
}

func (c *Client) jobs(ctx context.Context) (jobs []jobState, err error) {
	err = c.Run(ctx, "query-jobs", nil, &jobs)
	return jobs, err
}

func (c *Client) job(ctx context.Context, id string) (jobState, error) {
	jobs, err := c.jobs(ctx)
	if err != nil {
		return jobState{}, err
	}
	for _, j := range jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return jobState{}, wait.Stop(fmt.Errorf("QEMU has lost the job %s", id))
}
