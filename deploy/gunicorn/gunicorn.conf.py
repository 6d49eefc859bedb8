"""One listener of qmsup under a gunicorn of your own, for example beside other apps in one supervisor.

    QMSUP_CONFIG=/etc/qmsup.yaml QMSUP_LISTENER=main \
        gunicorn -c deploy/gunicorn/gunicorn.conf.py 'qmsup.listener.app:create()'

Does the same as `qmsup listener main -c /etc/qmsup.yaml`. Each worker makes its app itself, since the app needs the
worker's own link to the scheduler; the name above is what gunicorn insists on. Settings after the last line win.
"""

from qmsup import log
from qmsup.listener.command import gunicorn_settings
from qmsup.listener.deployment import deployment_from_environment

_deployment = deployment_from_environment()
_spec = _deployment.spec
log.set_up(level=_spec.log_level, style=_spec.log_format)
globals().update(gunicorn_settings(_spec, _spec.listeners[_deployment.listener]))
