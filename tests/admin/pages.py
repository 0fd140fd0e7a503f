"""Pages as a browser has them: a form is filled in from what stands on the page."""

from typing import Any

import lxml.html
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

Data = dict[str, Any]


def tree(response: HttpResponse) -> Any:
    assert response.status_code == 200, response.status_code
    return lxml.html.fromstring(response.content.decode())


def text(response: HttpResponse) -> str:
    """What stands on the page, its blanks folded."""
    return " ".join(tree(response).text_content().split())


def form_data(response: HttpResponse, form_id: str) -> Data:
    """What the browser would send if the page were saved as it is."""
    form = tree(response).get_element_by_id(form_id)
    data: Data = {}
    for name, value in form.form_values():
        value = value.removeprefix("\n")  # a browser leaves out the first line break of a text area
        if name in data:
            data[name] = [*(data[name] if isinstance(data[name], list) else [data[name]]), value]
        else:
            data[name] = value
    return data


def url_of(instance: Any, page: str = "change") -> str:
    meta = instance._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{page}", args=[instance.pk])


def list_url(model: Any, page: str = "changelist") -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}")


def open_form(client: Client, instance: Any) -> Data:
    """The form on the change page, filled in with what is there."""
    return form_data(client.get(url_of(instance)), f"{instance._meta.model_name}_form")


def save(client: Client, instance: Any, data: Data) -> None:
    """Save the page, which takes it."""
    response = client.post(url_of(instance), data)
    assert response.status_code == 302, errors(response)


def refused(client: Client, instance: Any, data: Data) -> HttpResponse:
    """Save the page, which does not take it; the page with its errors."""
    response = client.post(url_of(instance), data)
    assert response.status_code == 200, response.status_code
    return response


def errors(response: HttpResponse) -> list[str]:
    """The messages in the lists of errors on the page."""
    lists = tree(response).xpath("//ul[contains(@class, 'errorlist')]/li")
    return [item.text_content().strip() for item in lists]


def row_count(response: HttpResponse) -> int:
    """The rows of a changelist."""
    return len(tree(response).xpath("//table[@id='result_list']/tbody/tr"))
