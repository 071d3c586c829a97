package distribution

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// The bounds on a list of tags. mcr.microsoft.com/windows/servercore has about 2,000.
const (
	mostTags     = 20_000
	tagsOfAPage  = 1_000
	maxTagsReply = 1 << 20 // bytes
)

// Tags returns the tags of the repository in the registry's order, at most 20,000. Names that are no tags are left out. It asks
// for the next page by the last tag, and follows no link that the registry names.
func (r *Repository) Tags(ctx context.Context) (all []string, err error) {
	last := ""
	for range mostTags / tagsOfAPage {
		page, err := r.tagPage(ctx, last)
		if err != nil {
			return nil, err
		}
		for _, tag := range page {
			if IsTag(tag) && len(all) < mostTags { // a page may have more than was asked for
				all = append(all, tag)
			}
		}
		// A registry that knows no pages sends all tags each time.
		if len(page) != tagsOfAPage || page[len(page)-1] == last {
			return all, nil
		}
		last = page[len(page)-1]
	}
	return all, nil
}

// tagPage returns the tags after the last one of the page before.
func (r *Repository) tagPage(ctx context.Context, last string) ([]string, error) {
	query := url.Values{"n": {strconv.Itoa(tagsOfAPage)}}
	if last != "" {
		query.Set("last", last)
	}
	response, err := r.getQuery(ctx, "tags/list", query, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, &StatusError{Reference: r.reference, Status: response.StatusCode}
	}
	content, err := readAll(response.Body, maxTagsReply)
	if err != nil {
		return nil, fmt.Errorf("read the tags of %s/%s: %w", r.reference.Registry, r.reference.Repository, r.failed(ctx, err))
	}
	var reply struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(content, &reply); err != nil { // err may quote the reply
		return nil, fmt.Errorf("read the tags of %s/%s: the registry sends no list of tags: check the name", r.reference.Registry,
			r.reference.Repository)
	}
	return reply.Tags, nil
}
