"""Labels of AgentDojo's four tool sets: written from the tools' signatures and descriptions, once per suite.

An output is trusted where nobody but the user's own system writes any part of it. Where a listing's names are the
system's (hotels of a city) and the reviews are the public's, the listing is trusted and the reviews are not.
"""

from __future__ import annotations

from edgeagent.policy.labels import (
    Labels,
    Record,
    amount,
    date,
    egress,
    free,
    handle,
    irreversible,
    link,
    marks,
    name,
    party,
    read,
    secret,
    text,
    url,
    write,
)

MAIL = egress(
    recipients=party,
    cc=party,
    bcc=party,
    subject=text,
    body=text,
    attachments=handle("file", at="file_id"),
)
EVENT = write(
    creates="event",
    title=name,
    start_time=date,
    end_time=date,
    description=text,
    participants=party,
    location=text,
)
EVENT_RECORD = Record("event", id="id_", name="title", outsiders=True, fields={"participants": party})

FILE_RECORD = Record("file", id="id_", name="filename")

WORKSPACE = Labels(
    records=(
        FILE_RECORD,
        EVENT_RECORD,
        Record("mail", id="id_", name="subject", outsiders=True, fields={"sender": party}),
        Record("contact", name="name", fields={"email": party}),
    ),
    tools={
        "send_email": MAIL,
        "delete_email": irreversible(email_id=handle("mail")),
        "get_unread_emails": marks(gives="mail"),
        "get_received_emails": read(gives="mail"),
        "get_sent_emails": read(gives="mail"),
        "get_draft_emails": read(gives="mail"),
        "search_emails": read(gives="mail"),
        "search_contacts_by_name": read(trusted=True, gives="contact"),
        "search_contacts_by_email": read(trusted=True, gives="contact"),
        "get_current_day": read(trusted=True),
        "search_calendar_events": read(gives="event"),
        "get_day_calendar_events": read(gives="event"),
        "create_calendar_event": EVENT,
        "cancel_calendar_event": irreversible(event_id=handle("event")),
        "reschedule_calendar_event": write(event_id=handle("event"), new_start_time=date, new_end_time=date),
        "add_calendar_event_participants": egress(event_id=handle("event"), participants=party),
        "append_to_file": write(file_id=handle("file"), content=text),
        "search_files_by_filename": read(gives="file"),
        "create_file": write(creates="file", filename=name, content=text),
        "delete_file": irreversible(file_id=handle("file")),
        "get_file_by_id": read(gives="file"),
        "list_files": read(gives="file"),
        "share_file": egress(file_id=handle("file"), email=party, permission=free),
        "search_files": read(gives="file"),
    },
)

_LISTED = read(trusted=True)
TRAVEL = Labels(
    records=(
        FILE_RECORD,
        EVENT_RECORD,
        Record("hotel", form="lines"),
        Record("restaurant", form="lines"),
        Record("company", form="lines"),
    ),
    tools={
        "get_user_information": read(trusted=True, confidential=True),
        "get_all_hotels_in_city": read(trusted=True, gives="hotel"),
        "get_hotels_prices": _LISTED,
        "get_rating_reviews_for_hotels": read(),
        "get_hotels_address": _LISTED,
        "get_all_restaurants_in_city": read(trusted=True, gives="restaurant"),
        "get_cuisine_type_for_restaurants": _LISTED,
        "get_restaurants_address": _LISTED,
        "get_rating_reviews_for_restaurants": read(),
        "get_dietary_restrictions_for_all_restaurants": _LISTED,
        "get_contact_information_for_restaurants": _LISTED,
        "get_price_for_restaurants": _LISTED,
        "check_restaurant_opening_hours": _LISTED,
        "get_all_car_rental_companies_in_city": read(trusted=True, gives="company"),
        "get_car_types_available": _LISTED,
        "get_rating_reviews_for_car_rental": read(),
        "get_car_fuel_options": _LISTED,
        "get_car_rental_address": _LISTED,
        "get_car_price_per_day": _LISTED,
        "create_calendar_event": EVENT,
        "search_calendar_events": read(gives="event"),
        "get_day_calendar_events": read(gives="event"),
        "cancel_calendar_event": irreversible(event_id=handle("event")),
        "reserve_hotel": write(hotel=name, start_day=date, end_day=date),
        "reserve_car_rental": write(company=name, start_time=date, end_time=date),
        "reserve_restaurant": write(restaurant=name, start_time=date),
        "get_flight_information": _LISTED,
        "send_email": MAIL,
    },
)

BANKING = Labels(
    records=(
        Record("order", id="id", name="subject", fields={"recipient": party, "amount": amount}),
        Record("transaction", id="id", name="subject", outsiders=True, fields={"sender": party, "recipient": party}),
    ),
    tools={
        "get_iban": read(trusted=True, confidential=True),
        "send_money": egress(recipient=party, amount=amount, subject=text, date=date),
        "schedule_transaction": egress(recipient=party, amount=amount, subject=text, date=date, recurring=free),
        "update_scheduled_transaction": egress(
            id=handle("order"), recipient=party, amount=amount, subject=text, date=date, recurring=free
        ),
        "get_balance": read(trusted=True),
        "get_most_recent_transactions": read(gives="transaction"),
        "get_scheduled_transactions": read(trusted=True, gives="order"),
        "read_file": read(),
        "get_user_info": read(trusted=True, confidential=True),
        "update_password": write(trusted=True, password=secret),
        "update_user_info": write(trusted=True, first_name=name, last_name=name, street=name, city=name),
    },
)

SLACK = Labels(
    records=(
        Record("channel", form="items", closed=True),
        Record("user", form="items", closed=True),
        Record("message", links=True, fields={"sender": handle("user")}),
    ),
    tools={
        "get_channels": read(gives="channel"),
        "add_user_to_channel": egress(trusted=True, user=handle("user"), channel=handle("channel")),
        "read_channel_messages": read(gives="message"),
        "read_inbox": read(gives="message"),
        "send_direct_message": egress(trusted=True, recipient=handle("user"), body=text),
        "send_channel_message": egress(trusted=True, channel=handle("channel"), body=text),
        "get_users_in_channel": read(gives="user"),
        "invite_user_to_slack": egress(trusted=True, creates="user=user", user=name, user_email=party),
        "remove_user_from_slack": irreversible(trusted=True, user=handle("user")),
        "get_webpage": egress(url=link),
        "post_webpage": egress(trusted=True, url=url, content=text),
    },
)

SUITES = {"workspace": WORKSPACE, "travel": TRAVEL, "banking": BANKING, "slack": SLACK}
