package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/requests"
)

func (a rest) notificationsOperations(s section) {
	register(a, s, route{http.MethodGet, "/notifications", 200, "list-notifications", models.Say("List your notifications, newest first")},
		a.listNotifications)
	register(a, s, route{http.MethodGet, "/notifications/unread", 200, "count-unread-notifications", models.Say("Count unread notifications")},
		a.countUnreadNotifications)
	register(a, s, route{http.MethodPost, "/notifications/read", 204, "read-notifications",
		models.Say("Mark all notifications as read, or all up to an ID")}, a.readNotifications)
	register(a, s, route{http.MethodPost, "/notifications/{id}/read", 200, "read-notification", models.Say("Mark a notification as read")},
		a.readNotification)
	register(a, s, route{http.MethodGet, "/me/notification-preferences", 200, "get-notification-preferences",
		models.Say("Get your notification preferences")}, a.getNotificationPreference)
	register(a, s, route{http.MethodPut, "/me/notification-preferences", 200, "set-notification-preferences",
		models.Say("Set your notification preferences")}, a.setNotificationPreference)
}

// Notification is a message to the user.
type Notification struct {
	ID        int64      `json:"id"`
	Kind      string     `json:"kind" doc:"notification type, such as request.approved"`
	Text      string     `json:"text"`
	Path      string     `json:"path,omitempty" doc:"portal path of the related resource"`
	CreatedAt time.Time  `json:"created_at"`
	ReadAt    *time.Time `json:"read_at,omitempty" doc:"time of reading; absent if unread"`

	Request        *requests.RequestInput `json:"request,omitempty" doc:"body for POST /requests that requests a 30-day extension; absent if not applicable"`
	Requested      bool                   `json:"requested,omitempty" doc:"an extension request is pending"`
	PendingRequest int64                  `json:"pending_request,omitempty" doc:"ID of the pending request, if it is yours"`
}

func notificationOf(n models.Notification, e models.Extension) Notification {
	v := Notification{ID: n.ID, Kind: n.Kind, Text: n.Text.String(), Path: n.Link, CreatedAt: n.CreatedAt.UTC(), ReadAt: utc(n.ReadAt),
		Requested: e.Pending != 0}
	if e.Own {
		v.PendingRequest = e.Pending
	}
	if e.Kind != "" && !e.Direct && e.Pending == 0 {
		v.Request = &requests.RequestInput{Requested: e.Requested(), Reason: e.Reason.String()}
	}
	return v
}

func (a rest) listNotifications(ctx context.Context, in *Paging) (*Response[List[Notification]], error) {
	extensions := map[int64]models.Extension{}
	return listed(*in, func(n models.Notification) int64 { return n.ID }, func(p store.Page) ([]models.Notification, error) {
		rows, err := a.Notifications.Inbox(ctx, actorOf(ctx), p)
		if err != nil || len(extensions) > 0 { // the second call only finds out whether there are more
			return rows, err
		}
		extensions, err = a.notificationExtensions(ctx, rows)
		return rows, err
	}, func(n models.Notification) Notification { return notificationOf(n, extensions[n.ID]) })
}

// UnreadCount is how much is not read.
type UnreadCount struct {
	Unread int64 `json:"unread"`
}

func (a rest) countUnreadNotifications(ctx context.Context, _ *struct{}) (*Response[UnreadCount], error) {
	n, err := a.Notifications.Unread(ctx, actorOf(ctx))
	return &Response[UnreadCount]{UnreadCount{n}}, err
}

func (a rest) readNotification(ctx context.Context, in *ByID) (*Response[Notification], error) {
	n, err := a.Notifications.Read(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	extensions, err := a.notificationExtensions(ctx, []models.Notification{n})
	return &Response[Notification]{notificationOf(n, extensions[n.ID])}, err
}

// UpTo selects the notifications to mark as read.
type UpTo struct {
	UpTo int64 `query:"up_to" minimum:"1" doc:"ID of the newest notification to mark; absent for all"`
}

func (a rest) readNotifications(ctx context.Context, in *UpTo) (*Nothing, error) {
	return nil, a.Notifications.ReadAll(ctx, actorOf(ctx), in.UpTo)
}

// NotificationPreference is the delivery preference of the user.
type NotificationPreference struct {
	ByMail   bool   `json:"by_mail" doc:"send notifications by email, if a mail server is configured"`
	Language string `json:"language" enum:"en,zh" doc:"language of emails"`
}

func (a rest) getNotificationPreference(ctx context.Context, _ *struct{}) (*Response[NotificationPreference], error) {
	p, err := a.Notifications.Preference(ctx, actorOf(ctx))
	if p.Language == "" {
		p.Language = "en"
	}
	return &Response[NotificationPreference]{NotificationPreference{!p.PortalOnly, p.Language}}, err
}

func (a rest) setNotificationPreference(ctx context.Context, in *Create[NotificationPreference]) (
	*Response[NotificationPreference], error) {
	if err := a.Notifications.SetPreference(ctx, actorOf(ctx), in.Body.ByMail, in.Body.Language); err != nil {
		return nil, err
	}
	return &Response[NotificationPreference]{in.Body}, nil
}
