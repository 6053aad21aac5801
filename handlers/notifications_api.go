package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool/requests"
)

func (a rest) notificationsOperations(s section) {
	register(a, s, route{http.MethodGet, "/notices", 200, "list-notices", "List what you were told, newest first"}, a.listNotices)
	register(a, s, route{http.MethodGet, "/notices/unread", 200, "count-unread-notices", "Count what you have not read"}, a.countUnreadNotices)
	register(a, s, route{http.MethodPost, "/notices/read", 204, "read-notices", "Mark notices as read: all, or all up to one"}, a.readNotices)
	register(a, s, route{http.MethodPost, "/notices/{id}/read", 200, "read-notice", "Mark a notice as read"}, a.readNotice)
	register(a, s, route{http.MethodGet, "/me/notices", 200, "get-notice-preference", "Show how you want to be told"}, a.getNoticePreference)
	register(a, s, route{http.MethodPut, "/me/notices", 200, "set-notice-preference", "Choose how you want to be told"}, a.setNoticePreference)
}

// Notice is something that you were told.
type Notice struct {
	ID        int64      `json:"id"`
	Kind      string     `json:"kind" doc:"such as request.approved"`
	Text      string     `json:"text"`
	Path      string     `json:"path,omitempty" doc:"of what it is about, in the portal"`
	CreatedAt time.Time  `json:"created_at"`
	ReadAt    *time.Time `json:"read_at,omitempty" doc:"absent: not yet"`

	Request        *requests.RequestInput `json:"request,omitempty" doc:"of a notice of an end: what to POST to /requests to ask for 30 more days; absent: nothing is to be asked"`
	Asked          bool                   `json:"asked,omitempty" doc:"a later end is asked for already, and not decided"`
	PendingRequest int64                  `json:"pending_request,omitempty" doc:"number of that request, when it is yours"`
}

func noticeOf(n models.Notice, e models.Extension) Notice {
	v := Notice{ID: n.ID, Kind: n.Kind, Text: n.Text.String(), Path: n.Link, CreatedAt: n.CreatedAt.UTC(), ReadAt: utc(n.ReadAt), Asked: e.Pending != 0}
	if e.Own {
		v.PendingRequest = e.Pending
	}
	if e.Kind != "" && !e.Direct && e.Pending == 0 {
		v.Request = &requests.RequestInput{Asked: e.Asked(), Reason: e.Reason.String()}
	}
	return v
}

func (a rest) listNotices(ctx context.Context, in *Paging) (*Answer[List[Notice]], error) {
	extensions := map[int64]models.Extension{}
	return listed(*in, func(n models.Notice) int64 { return n.ID }, func(p models.Page) ([]models.Notice, error) {
		rows, err := a.Notices.Inbox(ctx, actorOf(ctx), p)
		if err != nil || len(extensions) > 0 { // only whether there are more is asked
			return rows, err
		}
		extensions, err = a.noticeExtensions(ctx, rows)
		return rows, err
	}, func(n models.Notice) Notice { return noticeOf(n, extensions[n.ID]) })
}

// UnreadCount is how much is not read.
type UnreadCount struct {
	Unread int64 `json:"unread"`
}

func (a rest) countUnreadNotices(ctx context.Context, _ *struct{}) (*Answer[UnreadCount], error) {
	n, err := a.Notices.Unread(ctx, actorOf(ctx))
	return &Answer[UnreadCount]{UnreadCount{n}}, err
}

func (a rest) readNotice(ctx context.Context, in *ByID) (*Answer[Notice], error) {
	n, err := a.Notices.Read(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	extensions, err := a.noticeExtensions(ctx, []models.Notice{n})
	return &Answer[Notice]{noticeOf(n, extensions[n.ID])}, err
}

// UpTo says which notices were seen.
type UpTo struct {
	UpTo int64 `query:"up_to" minimum:"1" doc:"id of the newest notice that you have seen; absent: all"`
}

func (a rest) readNotices(ctx context.Context, in *UpTo) (*Nothing, error) {
	return nothing(a.Notices.ReadAll(ctx, actorOf(ctx), in.UpTo))
}

// NoticePreference is how you want to be told.
type NoticePreference struct {
	ByMail   bool   `json:"by_mail" doc:"by e-mail, too, where the portal has a mail server"`
	Language string `json:"language" enum:"en,zh" doc:"of e-mail"`
}

func (a rest) getNoticePreference(ctx context.Context, _ *struct{}) (*Answer[NoticePreference], error) {
	p, err := a.Notices.Preference(ctx, actorOf(ctx))
	if p.Language == "" {
		p.Language = "en"
	}
	return &Answer[NoticePreference]{NoticePreference{!p.PortalOnly, p.Language}}, err
}

func (a rest) setNoticePreference(ctx context.Context, in *Create[NoticePreference]) (*Answer[NoticePreference], error) {
	if err := a.Notices.Prefer(ctx, actorOf(ctx), in.Body.ByMail, in.Body.Language); err != nil {
		return nil, err
	}
	return &Answer[NoticePreference]{in.Body}, nil
}
