package main

import (
	"context"
	"net/http"

	"tidemark/internal/auth"
	"tidemark/internal/fault"
	"tidemark/internal/newlyunread"
	"tidemark/internal/readstate"
)

// summary is what GET /me answers.
type summary struct {
	NewlyUnread    int    `json:"newly_unread_count"`
	UnreadChannels int    `json:"unread_channels"`
	UnreadLabel    string `json:"unread_label"`
	Mentions       int    `json:"mentions"`
}

// me answers the one cheap call that an app makes on its start, for those who speak no GraphQL.
func (s *server) me(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.config.RequestTimeout)
	defer cancel()
	viewer, err := auth.ViewerFrom(ctx)
	if err == nil {
		if err = s.people.Welcome(ctx, viewer); fault.CodeOf(err) == fault.Unavailable {
			err = nil // who only reads need not be known
		}
	}
	var total readstate.Total
	if err == nil {
		total, err = s.readStates.Total(ctx, viewer.ID, readstate.DefaultCap)
	}
	var written newlyunread.Shown
	if err == nil {
		written, err = s.newlyUnread.Get(ctx, viewer.ID, newlyunread.DefaultFirst)
	}
	if err != nil {
		s.writeFault(w, r, err)
		return
	}
	unread, mentions := total.Shown()
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, summary{
		NewlyUnread: written.Count(), UnreadChannels: total.UnreadChannels, UnreadLabel: unread.Label(), Mentions: mentions.Count,
	})
}

// writeFault answers with an error in the form that GraphQL gives it.
func (s *server) writeFault(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	code := fault.CodeOf(err)
	switch code {
	case fault.Unauthenticated:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Bearer")
	case fault.Unavailable:
		status = http.StatusServiceUnavailable
		s.log.WarnContext(r.Context(), "a part is away", "path", r.URL.Path, "error", err)
	default:
		if r.Context().Err() != nil {
			return // the caller is gone
		}
		s.log.ErrorContext(r.Context(), "call failed", "path", r.URL.Path, "error", err)
	}
	writeJSON(w, status, map[string]any{"errors": []any{
		map[string]any{"message": fault.MessageOf(err), "extensions": map[string]any{"code": code}},
	}})
}
